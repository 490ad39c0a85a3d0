"""What a name in a pickle stands for, by its text alone: nothing is imported."""

from __future__ import annotations

from enum import Enum

from publish.domain.errors import FormatError
from publish.domain.standard_library import STANDARD_LIBRARY


class Kind(Enum):
    """What calling a name makes, as far as the reader cares."""

    RECORD = "an object with attributes"
    MAPPING = "a dictionary"
    PLAIN = "a value that the reader skips"


_MAPPINGS = {
    "builtins": frozenset({"dict"}),
    "collections": frozenset({"OrderedDict", "defaultdict", "Counter"}),
}
_BUILTINS = frozenset(
    {"list", "tuple", "set", "frozenset", "slice", "range", "object", "bool", "int", "float", "complex"}
    | {"str", "bytes", "bytearray"}
)
_PATHS = frozenset({"Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath"})
_PLAIN = {
    "builtins": _BUILTINS,
    # Protocol 2 has Python 2's names.
    "__builtin__": _BUILTINS | {"dict", "long", "unicode", "xrange"},
    "collections": frozenset({"deque"}),
    "datetime": frozenset({"date", "datetime", "time", "timedelta", "timezone"}),
    "pathlib": _PATHS,
    # Python 3.13
    "pathlib._local": _PATHS,
}


def kind_of(module: str, name: str) -> Kind:
    """What the class or function `name` of a module makes.

    Raises FormatError for a name of the standard library that plain data does not need.
    """
    if name in _MAPPINGS.get(module, ()):
        return Kind.MAPPING
    if name in _PLAIN.get(module, ()) or (module, name) == ("torch", "Size"):
        return Kind.PLAIN
    if module.partition(".")[0] in STANDARD_LIBRARY:
        raise FormatError(f"a pickle that would run Python's own code: {module[:100]}.{name[:100]}")
    return Kind.RECORD
