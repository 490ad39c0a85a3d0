"""Every `publish` command line in the Markdown pages is one that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from publish.cli import goflag, verbs

REPOSITORY = Path(__file__).parents[2]
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "examples").rglob("*.md")]
VARIABLES = {"DISPATCH_EPOCH": "1", "DISPATCH_ATTEMPT": "try-1"}
NUMBERS = {"STEP", "$STEP", "$NODE_RANK"}
OPERATORS = {"&", "&&", "||", ";", "|", ")", ">"}


def commands(text: str) -> Iterator[list[str]]:
    """The words of each `publish VERB` in the shell blocks of a page."""
    for block in re.findall(r"^```(?:sh|bash|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        joined = re.sub(r"^\$ ", "", block, flags=re.MULTILINE).replace("\\\n", " ")
        for line in joined.splitlines():
            if found := re.search(r"(?:^|[(]|\bthen |\|\| )publish ([a-z].*)$", line):
                yield list(_words(found[1]))


def _words(line: str) -> Iterator[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();|&<>")
    lexer.wordchars += "$%,"
    lexer.whitespace_split = True
    for word in lexer:
        if word in OPERATORS:
            return
        yield "1" if word in NUMBERS else word


EXAMPLES = [(page.relative_to(REPOSITORY), words) for page in PAGES for words in commands(page.read_text())]


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize("words", [pytest.param(words, id=f"{page}: {' '.join(words)}") for page, words in EXAMPLES])
def test_a_command_line_is_correct(words: list[str]) -> None:
    """cli.1, cli.3"""
    verb = verbs.load(words[0])
    verb.check(goflag.parse(verb.flags, words[1:], VARIABLES))
