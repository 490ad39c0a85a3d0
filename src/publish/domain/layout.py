"""What a row of the table in `frameworks` says: how a framework names its saves and what makes one complete."""

from __future__ import annotations

from enum import Enum

from publish.domain.entry import MAX_UINT64
from publish.domain.errors import ConfigError
from publish.domain.light_typing import NamedTuple
from publish.domain.root import Where


class Check(Enum):
    """What must be true of a file; the value is what `-marker PATTERN:CHECK` takes."""

    ANY = "any"
    """It exists, empty or not."""
    FULL = "full"
    """It is not empty: what a power loss leaves behind is."""
    JSON = "json"
    """It is a whole JSON object; a file that is cut off is still being written."""
    ZIP = "zip"
    """It is whole as `torch.save` writes it."""
    DCP = "dcp"
    """It is a readable `.metadata` of torch's distributed checkpoints, and every file that it names is long enough."""
    INDEX = "index"
    """It is a whole `*.index.json`, and every safetensors file that it names is whole."""
    RANKS = "ranks"
    """The files that the pattern matches are one for each rank, as far as their names tell."""


class Need(NamedTuple):
    """A file that a complete save has. `pattern` is relative to the save; `*` matches within one name."""

    pattern: bytes
    check: Check
    step_key: str = ""
    """JSON: the key whose integer is the save's step; another integer there can never become right."""
    set_key: str = ""
    """JSON: the key that is there, and not null, once the save is complete."""
    unset_key: str = ""
    """JSON: the key that is true in a save which its framework is going to remove."""
    each_folder: bool = False
    """Every folder directly in the save has the file; `pattern` starts with `*/`."""

    @property
    def is_literal(self) -> bool:
        """Whether the pattern is the path of one file."""
        return b"*" not in self.pattern


ITSELF = b"."
"""The pattern of a save that is one file."""


class Tracker(NamedTuple):
    """A file beside the saves that names the last complete one, by its step or its folder."""

    file: bytes
    exact: bool = False
    """Whether it must name this very save; else a later one will do."""


class Layout(NamedTuple):
    """One row of the table: a way to name and to complete a save. Pure data."""

    forms: tuple[str, ...]
    """The names as people write them: `N` is the step, `E` another number, `NAME` any text."""
    name: bytes
    """A regular expression for the whole name of a save; its last group that took part is the step."""
    needs: tuple[Need, ...]
    forbids: tuple[bytes, ...] = ()
    """Patterns of which none exists: in the save, or with `../` beside it, where `{}` is the save's name."""
    tracker: Tracker | None = None
    settle: bool = False
    """Whether no file of the save may differ from how the scan before saw it."""
    ranks: int | None = None
    """How many ranks `Check.RANKS` asks for; None: as many as the names tell of."""
    where: Where = Where.ANYWHERE
    shortest_name: bytes = b""
    """As short as the name can be, if the forms do not tell."""

    @property
    def is_file(self) -> bool:
        """Whether the save is one file instead of a folder."""
        return self.needs[0].pattern == ITSELF

    @property
    def shortest(self) -> bytes:
        """As short as the name of such a save can be."""
        if self.shortest_name:
            return self.shortest_name
        shortest = min((form.replace("NAME", "") for form in self.forms), key=len)
        return shortest.replace("N", "0").replace("E", "0").encode()

    @property
    def markers(self) -> tuple[bytes, ...]:
        """The files directly in the save without one of which it is not complete, as far as their names are known."""
        return tuple(
            need.pattern for need in self.needs if need.is_literal and b"/" not in need.pattern and not self.is_file
        )

    def step_of(self, name: bytes) -> int | None:
        """The step in the name of a save; None: it is not the name of one."""
        import re  # start-up: a watch that finds no save needs none

        match = re.fullmatch(self.name, name)
        if match is None or match.lastindex is None:
            return None
        digits = match[match.lastindex]
        step = int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else MAX_UINT64 + 1
        return step if step <= MAX_UINT64 else None


_MAX_DIGITS = 255


class Save(NamedTuple):
    """A save: its step and its path relative to the root. Saves compare by step, of equals by path."""

    step: int
    path: bytes

    @property
    def folder(self) -> bytes:
        """The folder that holds the save, b"" for the root."""
        return self.path.rpartition(b"/")[0]

    @property
    def name(self) -> bytes:
        """The last part of the path."""
        return self.path.rpartition(b"/")[2]


class Framework(NamedTuple):
    """What `-framework` chooses. A save is complete when one of the layouts says so."""

    name: str
    layouts: tuple[Layout, ...]
    title: str
    """Who writes such saves, for people."""

    @property
    def shortest(self) -> bytes:
        """As short as the name of a save can be."""
        return min((layout.shortest for layout in self.layouts), key=len)

    @property
    def forms(self) -> tuple[str, ...]:
        """How people write the names of such saves."""
        return tuple(dict.fromkeys(form for layout in self.layouts for form in layout.forms))

    def layouts_on(self, where: Where) -> tuple[Layout, ...]:
        """The layouts for a kind of root. Raises ConfigError if there is none."""
        layouts = tuple(layout for layout in self.layouts if layout.where in (Where.ANYWHERE, where))
        if not layouts:
            raise ConfigError(
                f"complete saves cannot be recognised {where.value} "
                f"(publish them from inside the training): {self.name}"
            )
        return layouts
