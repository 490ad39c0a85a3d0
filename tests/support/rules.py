"""The rules of docs/contract.md, and the places in the repository that cite them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]
CONTRACT = Path("docs/contract.md")
# Folders whose Python files cite rules in docstrings and comments, and whose other text files cite them anywhere.
CITING = ("src", "tests", "examples", "tools", "bench", "demo", "docs")
TEXT = (".md", ".yaml", ".yml", ".sh", ".sbatch", ".toml")

_RULE = re.compile(r"^- \*\*(?P<id>[a-z0-9]+\.[0-9]+)\*\*(?P<planned> \*\(planned\)\*)?(?= )", re.MULTILINE)


class Rule(NamedTuple):
    """One rule; `planned`: agreed, and not implemented yet."""

    id: str
    planned: bool


class Citation(NamedTuple):
    """One docstring, comment or page that cites rules; `place` is `path` or, inside a function, `path::function`."""

    place: str
    line: int
    ids: frozenset[str]


def read_rules(page: str) -> list[Rule]:
    """The rules of a contract in their order."""
    return [Rule(match["id"], match["planned"] is not None) for match in _RULE.finditer(page)]


class Reader:
    """Finds citations of the families (`layout`, `prune`, ...) that the rules have."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        families = "|".join(sorted({rule.id.partition(".")[0] for rule in rules}))
        cited = rf"(?<![\w./-])(?:{families})\.[0-9]+(?![\w])(?!\.\w)"
        self._id = re.compile(cited)
        self._range = re.compile(rf"({cited})\s+to\s+({cited})")

    def ids(self, text: str) -> frozenset[str]:
        """The ids in a text; `vault.1 to vault.3` cites three."""
        found = set(self._id.findall(text))
        for first, last in self._range.findall(text):
            family, _, start = first.partition(".")
            other, _, end = last.partition(".")
            if family == other:
                found |= {f"{family}.{number}" for number in range(int(start), int(end) + 1)}
        return frozenset(found)

    def in_text(self, text: str, place: str) -> Iterator[Citation]:
        """The citations in a page, line by line (and in a range that goes over the end of one)."""
        for number, line in enumerate(text.splitlines(), 1):
            if ids := self.ids(line):
                yield Citation(place, number, ids)

    def in_python(self, source: str, place: str) -> Iterator[Citation]:
        """The citations in docstrings and comments."""
        functions = _functions(source)
        for line, text in _prose(source):
            if ids := self.ids(text):
                inside = [name for name, first, last in functions if first <= line <= last]
                yield Citation("::".join([place, *inside]), line, ids)

    def in_repository(self, root: Path = REPOSITORY) -> Iterator[Citation]:
        """Every citation below the folders of CITING, except in virtual environments and caches."""
        for folder in CITING:
            for path in sorted((root / folder).rglob("*")):
                place = path.relative_to(root).as_posix()
                if any(part.startswith((".", "__pycache__")) for part in path.relative_to(root).parts):
                    continue
                if path.suffix == ".py":
                    yield from self.in_python(path.read_text(), place)
                elif path.suffix in TEXT:
                    yield from self.in_text(path.read_text(), place)


def is_test(place: str) -> bool:
    """Whether a citation here says that a test holds the rule."""
    path = place.partition("::")[0]
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def _functions(source: str) -> list[tuple[str, int, int]]:
    """The functions and classes of a module with their first and last lines, outer before inner."""
    nodes = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return sorted(
        ((node.name, node.lineno, node.end_lineno or node.lineno) for node in nodes), key=lambda item: item[1]
    )


def _prose(source: str) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a module: the line on which each starts, and its text."""
    begins_statement = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins_statement):
            yield token.start[0], token.string
        if token.type in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}:
            begins_statement = True
        elif token.type not in {tokenize.NL, tokenize.COMMENT, tokenize.ENCODING}:
            begins_statement = False
