"""docs/contract.md and the citations of its rules agree."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.contract_map import table
from tests.support.rules import CONTRACT, REPOSITORY, Citation, Reader, Rule, is_test, read_rules

PAGE = (REPOSITORY / CONTRACT).read_text()
RULES = read_rules(PAGE)
EXAMPLE = [Rule("layout.1", planned=False), Rule("layout.2", planned=False), Rule("prune.10", planned=True)]


@pytest.fixture(scope="module")
def citations() -> list[Citation]:
    return list(Reader(RULES).in_repository())


def test_every_rule_of_the_page_is_read() -> None:
    items = [line for line in PAGE.splitlines() if line.startswith("- ")]
    assert len(RULES) == len(items)


def test_an_id_names_one_rule() -> None:
    assert [name for name, count in Counter(rule.id for rule in RULES).items() if count > 1] == []


def test_every_rule_that_is_cited_exists(citations: list[Citation]) -> None:
    known = {rule.id for rule in RULES}
    assert [citation for citation in citations if citation.ids - known] == []


def test_every_implemented_rule_is_held_by_a_test(citations: list[Citation]) -> None:
    held = {rule for citation in citations if is_test(citation.place) for rule in citation.ids}
    assert [rule.id for rule in RULES if not rule.planned and rule.id not in held] == []


def test_rules_are_read_with_their_marks() -> None:
    page = "# Page\n\n- **layout.1** One.\n  More.\n- **prune.10** *(planned)* Two.\n\n**layout.2** is not an item.\n"
    assert read_rules(page) == [Rule("layout.1", planned=False), Rule("prune.10", planned=True)]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("layout.1", {"layout.1"}),
        ("the entry stays (layout.1, prune.10).", {"layout.1", "prune.10"}),
        ("layout.1 to layout.3: the codec", {"layout.1", "layout.2", "layout.3"}),
        ("layout.1 to\n    layout.3", {"layout.1", "layout.2", "layout.3"}),
        ("layout.9", {"layout.9"}),
        ("prune.1 and prune.10", {"prune.1", "prune.10"}),
        ("a file layout.1.json, a path a/prune.1, prune.1x, other.1, prune.x, reprune.1", set()),
    ],
)
def test_ids_are_found_in_prose(text: str, ids: set[str]) -> None:
    assert Reader(EXAMPLE).ids(text) == ids


SOURCE = '''"""layout.1: the module."""

NAME = "layout.2"  # prune.10 is why


def outer():
    """layout.7"""

    def inner():
        # layout.8
        return "prune.3"
'''


def test_docstrings_and_comments_cite_and_other_strings_do_not() -> None:
    assert [(found.place, found.line, set(found.ids)) for found in Reader(EXAMPLE).in_python(SOURCE, "m.py")] == [
        ("m.py", 1, {"layout.1"}),
        ("m.py", 3, {"prune.10"}),
        ("m.py::outer", 7, {"layout.7"}),
        ("m.py::outer::inner", 10, {"layout.8"}),
    ]


def test_only_test_modules_hold_rules() -> None:
    assert is_test("tests/domain/test_entry.py::test_names")
    assert not is_test("tests/support/fakes.py")
    assert not is_test("src/publish/domain/entry.py")


def test_the_map_has_a_row_for_every_rule() -> None:
    cited = [
        Citation("tests/test_a.py::test_one", 3, frozenset({"layout.1", "prune.10"})),
        Citation("tests/test_b.py", 1, frozenset({"layout.1"})),
        Citation("src/publish/domain/entry.py::parse", 8, frozenset({"layout.1"})),
        Citation("docs/stores.md", 8, frozenset({"layout.2"})),
    ]
    assert table(EXAMPLE, cited).splitlines()[2:] == [
        "| layout.1 | tests/test_a.py::test_one<br>tests/test_b.py | src/publish/domain/entry.py |",
        "| layout.2 |  |  |",
        "| prune.10 *(planned)* | tests/test_a.py::test_one |  |",
    ]
