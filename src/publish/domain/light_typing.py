"""The names of `typing` that are needed at run time, without importing it.

`typing` takes a fifth of the time that a bare interpreter takes to start, and longer than all
that `resolve` imports besides (docs/decisions/0008-namedtuple-instead-of-dataclass.md). Type
checkers see the real names. Anything else of `typing` is imported under TYPE_CHECKING.
"""

from __future__ import annotations

__all__ = ["Generic", "NamedTuple", "Protocol", "TypeVar"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, NamedTuple, Protocol, TypeVar
else:
    from collections import namedtuple

    class Generic:
        """A base class that ignores its type parameters."""

        def __class_getitem__(cls, _parameters: object) -> type:
            """`Flag[int]` is `Flag`."""
            return cls

    class Protocol:
        """A base class for interfaces that nothing checks at run time."""

    class _NamedTupleMeta(type):
        def __new__(mcs, name: str, bases: tuple[type, ...], members: dict[str, object]) -> type:
            """A `collections.namedtuple` with the fields that are annotated, and the other members."""
            if not bases:
                return super().__new__(mcs, name, bases, members)
            fields = members.pop("__annotations__", {})
            defaults = [members.pop(field) for field in fields if field in members]
            fields_alone = namedtuple(name, fields, defaults=defaults, module=members["__module__"])  # noqa: PYI024
            return type(name, (fields_alone,), {"__slots__": (), **members})

    class NamedTuple(metaclass=_NamedTupleMeta):
        """As typing.NamedTuple."""

    def TypeVar(name: str, **_: object) -> str:  # noqa: N802
        """Annotations are not evaluated: any value will do."""
        return name
