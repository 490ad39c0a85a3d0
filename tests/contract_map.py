"""Prints which tests hold and which modules implement each rule of docs/contract.md, as a Markdown table.

Run it with `python -m tests.contract_map` in the repository's root.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable

from tests.support.rules import CONTRACT, REPOSITORY, Citation, Reader, Rule, is_test, read_rules


def table(rules: Iterable[Rule], citations: Iterable[Citation]) -> str:
    """One row per rule: its id, the tests that cite it, the modules of `src` that cite it."""
    tests: dict[str, set[str]] = defaultdict(set)
    modules: dict[str, set[str]] = defaultdict(set)
    for citation in citations:
        for cited in citation.ids:
            if is_test(citation.place):
                tests[cited].add(citation.place)
            elif citation.place.startswith("src/"):
                modules[cited].add(citation.place.partition("::")[0])
    lines = ["| rule | tests | modules |", "|---|---|---|"]
    for rule in rules:
        name = f"{rule.id} *(planned)*" if rule.planned else rule.id
        cells = ["<br>".join(sorted(places[rule.id])) for places in (tests, modules)]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    rules = read_rules((REPOSITORY / CONTRACT).read_text())
    sys.stdout.write(table(rules, Reader(rules).in_repository()))


if __name__ == "__main__":
    main()
