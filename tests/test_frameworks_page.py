"""The pages show the table of frameworks as it is in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from publish.domain.frameworks import FRAMEWORKS
from publish.domain.layout import Check
from tests.support.framework_table import page_table, readme_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/frameworks.md"


@pytest.mark.parametrize(
    ("page", "table"), [("docs/frameworks.md", page_table()), ("README.md", readme_table())], ids=["page", "readme"]
)
def test_a_page_has_the_table_of_frameworks(page: str, table: str) -> None:
    """watch.2"""
    found = re.search(r"<!-- table -->\n(.*?)<!-- /table -->", (ROOT / page).read_text(), re.DOTALL)
    assert found, "no table between its markers"
    assert found[1].strip() == table, f"{page} should have:\n{table}"


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_each_framework_has_a_section(name: str) -> None:
    """watch.2"""
    assert re.search(rf"^### .*`-framework {name}`$", PAGE.read_text(), re.MULTILINE)


def test_each_check_is_described() -> None:
    """watch.2"""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    for check in Check:
        assert any(f"`{check.value}`" in row.split("|")[1] for row in rows), check
