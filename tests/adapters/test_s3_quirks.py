"""docs/s3-quirks.md names code and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ADAPTER = REPOSITORY / "src" / "publish" / "adapters" / "s3"
ROWS = re.findall(
    r"^\|.*\| `(\w+\.py)`: `(\w+)` \| `(test_\w+)` \|$",
    (REPOSITORY / "docs" / "s3-quirks.md").read_text(),
    re.MULTILINE,
)
TESTS = "\n".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))


def test_every_row_names_code_and_a_test() -> None:
    table = (REPOSITORY / "docs" / "s3-quirks.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith("| ") and "Handled in" not in line]
    assert len(ROWS) == len(rows) > 20


def test_the_code_and_the_tests_that_the_page_names_exist() -> None:
    for file, name, test in ROWS:
        assert re.search(rf"^ *(def |class )?{name}\b(\(| = |:)", (ADAPTER / file).read_text(), re.MULTILINE), (
            file,
            name,
        )
        assert f"def {test}(" in TESTS, test
