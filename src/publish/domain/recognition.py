"""Finds out why a folder has no saves for the framework that was chosen: what else is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from publish.domain.candidate import fitting, names_in
from publish.domain.entry import RESERVED, join, to_text
from publish.domain.errors import ConfigError, PublishError
from publish.domain.layout import Framework, Layout
from publish.domain.ports import Store
from publish.domain.root import Root, Where

_MAX_SHOWN = 5
# How many names are looked into; a folder with more than that is not one of saves.
_MAX_EXAMINED = 50
# How far below SAVES saves are looked for: MaxText puts them into RUN/checkpoints.
_MAX_LEVELS = 2
# What a folder may hold that is not looked at.
_SKIPPED = {Where.DIRECTORY: " (symbolic links are skipped)", Where.OBJECT_STORE: ""}


class Recogniser:
    """Looks at a folder of saves as every framework would."""

    def __init__(
        self, store: Store, root: Root, frameworks: Mapping[str, Framework], chosen: Framework, saves: bytes
    ) -> None:
        """`saves`: the folder, relative to the root."""
        self._store = store
        self._root = root
        self._where = root.where
        self._chosen = chosen
        self._others = [framework for framework in frameworks.values() if framework.name != chosen.name]
        self._saves = saves

    def describe_no_saves(self, *, ended: bool = False) -> str:
        """Why there is nothing to publish. `ended`: the watch is over."""
        folder = to_text(self._root.render(self._saves))
        names = self._names_in(self._saves)
        if not names:
            return f"{folder} {self._describe_nothing(ended=ended)}"
        forms = ", ".join(self._chosen.forms)
        line = f"nothing in {folder} has the name of a save of {self._chosen.name} ({forms}); it holds {_list(names)}"
        paths = [join(self._saves, name) for name in names]
        hint = self.other_framework(paths) or self._nested(paths)
        return f"{line}; {hint}" if hint else line

    def _describe_nothing(self, *, ended: bool) -> str:
        if self._store.exists(self._saves) or not self._saves:
            return f"is empty{_SKIPPED[self._where]}"
        above = self._saves.rpartition(b"/")[0]
        while above and not self._store.exists(above) and not self._names_in(above):
            above = above.rpartition(b"/")[0]
        names = self._names_in(above)
        others = [name for name in names if above or name not in RESERVED]
        absent = "never appeared" if ended else "is not there yet"
        holds = f"holds {_list(others)}" if others else "holds nothing else" if names else "is empty"
        return f"{absent}; {to_text(self._root.render(above))} {holds}"

    def describe_neglected(self) -> str | None:
        """A save of another framework that lies beside those of the chosen one; None: there is none."""
        try:
            names = self._names_in(self._saves)
        except PublishError:  # a hint is not worth a failure
            return None
        own = {candidate.save.path for candidate in fitting(self._chosen_layouts(), self._saves, names)}
        hint = self.other_framework(path for name in names if (path := join(self._saves, name)) not in own)
        return f"{hint}, and is not published" if hint else None

    def _chosen_layouts(self) -> Sequence[Layout]:
        return self._chosen.layouts_on(self._where)

    def other_framework(self, paths: Iterable[bytes]) -> str | None:
        """The -framework for which one of these paths is a complete save, as a hint; None: no such framework."""
        for path in islice(paths, _MAX_EXAMINED):
            for framework in self._others:
                if self._is_complete(framework, path):
                    return f"{to_text(self._root.render(path))} is a complete save for -framework {framework.name}"
        return None

    def _is_complete(self, framework: Framework, path: bytes) -> bool:
        folder, _, name = path.rpartition(b"/")
        try:
            layouts = framework.layouts_on(self._where)
            return any(
                candidate.examine(self._store).layout is not None for candidate in fitting(layouts, folder, [name])
            )
        except PublishError:  # a hint is not worth a failure
            return False

    def _nested(self, folders: list[bytes]) -> str | None:
        """A folder below SAVES that holds saves: at best of the chosen framework, else of another one."""
        layouts = self._chosen_layouts()
        others = []
        for _ in range(_MAX_LEVELS):
            inside = {folder: self._names_in(folder) for folder in folders[:_MAX_EXAMINED]}
            for folder, names in inside.items():
                for candidate in fitting(layouts, folder, names):
                    return self._describe_nested(folder, candidate.save.path)
            folders = [join(folder, name) for folder, names in inside.items() for name in names]
            others += folders[:_MAX_EXAMINED]
        return self.other_framework(others[:_MAX_EXAMINED])

    def _describe_nested(self, folder: bytes, save: bytes) -> str:
        """`folder` holds `save`, whose name fits; another framework may have written it all the same."""
        instead = f"watch {to_text(self._root.render(folder))} instead"
        if not self._is_complete(self._chosen, save) and (hint := self.other_framework([save])):
            return f"{hint}: {instead}, with that"
        return f"{to_text(self._root.render(save))} looks like one: {instead}"

    def _names_in(self, folder: bytes) -> list[bytes]:
        return sorted(self._iterate(folder))

    def _iterate(self, folder: bytes) -> Iterator[bytes]:
        for list_names in (self._store.list_directories, self._store.list_files_in):
            try:
                yield from names_in(list_names, folder)
            except ConfigError:  # a file
                continue


def _list(names: list[bytes]) -> str:
    """At most five names."""
    shown = ", ".join(to_text(name) for name in names[:_MAX_SHOWN])
    return shown + (f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else "")
