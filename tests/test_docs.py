"""The pages of docs/ agree with the repository: links, the map of files, the list of decisions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md"), *(REPOSITORY / "examples").rglob("*.md")])
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    assert broken == []


def test_every_file_of_the_architecture_page_exists() -> None:
    named = re.findall(r"`((?:src|tests)/[^`]+)`", (DOCS / "architecture.md").read_text())
    assert len(named) > 30
    assert [path for path in named if not (REPOSITORY / path).exists()] == []


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.name)
def test_every_decision_has_the_same_parts(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.name[:4]} ")
    assert re.search(r"^Status: .* · Date: \d{4}-\d{2}-\d{2}", text, re.MULTILINE | re.DOTALL)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences", "Alternatives"]


def test_the_list_of_decisions_has_each_page_once_with_its_title() -> None:
    rows = re.findall(r"^\| \[\d{4}\]\(([^)]+)\) \| (.*?) \|", (DOCS / "decisions/README.md").read_text(), re.MULTILINE)
    titles = [
        (page.name, page.read_text().partition("\n")[0].removeprefix(f"# {page.name[:4]} ")) for page in DECISIONS
    ]
    assert rows == titles
