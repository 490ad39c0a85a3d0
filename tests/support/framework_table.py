"""The table of frameworks as docs/frameworks.md and the README show it, made from the rows."""

from __future__ import annotations

from publish.domain.entry import to_text
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.layout import ITSELF, Check, Framework, Layout, Need
from publish.domain.root import Where

_CHECKS = {
    Check.ANY: "is there",
    Check.FULL: "is not empty",
    Check.JSON: "is whole JSON",
    Check.ZIP: "is a whole file of `torch.save`",
    Check.DCP: "is readable, and every byte that it names is there",
    Check.INDEX: "is whole, and every file that it names",
    Check.RANKS: "are there for every rank that the names tell of",
}


def page_table() -> str:
    """What docs/frameworks.md has between its markers."""
    lines = ["| `-framework` | save | complete when |", "|---|---|---|"]
    for framework in FRAMEWORKS.values():
        for number, layout in enumerate(framework.layouts):
            name = f"`{framework.name}`" if number == 0 else ""
            lines.append(f"| {name} | {_forms(layout.forms)} | {describe(layout)} |")
    return "\n".join(lines)


def readme_table() -> str:
    """What the README has between its markers."""
    lines = ["| `-framework` | writer | save |", "|---|---|---|"]
    lines += [f"| `{one.name}` | {one.title} | {_readme_forms(one)} |" for one in FRAMEWORKS.values()]
    return "\n".join(lines)


def _readme_forms(framework: Framework) -> str:
    shown = framework.forms[:3]
    return _forms(shown) + (", …" if len(framework.forms) > len(shown) else "")


def _forms(forms: tuple[str, ...]) -> str:
    return ", ".join(f"`{form}`" for form in forms)


def describe(layout: Layout) -> str:
    parts = [_need(need) for need in layout.needs]
    if layout.forbids:
        parts.append(f"{', '.join(map(_code, layout.forbids))} {'is' if len(layout.forbids) == 1 else 'are'} not there")
    if layout.tracker is not None:
        later = "" if layout.tracker.exact else " or a later save"
        parts.append(f"{_code(b'../' + layout.tracker.file)} names it{later}")
    if layout.settle:
        parts.append("two scans see the same files")
    where = "" if layout.where is Where.ANYWHERE else f" ({layout.where.value})"
    return "; ".join(parts) + where


def _need(need: Need) -> str:
    subject = "the file" if need.pattern == ITSELF else _code(need.pattern)
    keys = ""
    if need.step_key:
        keys += f" whose `{need.step_key}` is N"
    if need.set_key:
        keys += f" that has `{need.set_key}`"
    if need.unset_key:
        keys += f" where `{need.unset_key}` is not true"
    each = " in each folder" if need.each_folder else ""
    return f"{subject} {_CHECKS[need.check]}{keys}{each}"


def _code(pattern: bytes) -> str:
    return f"`{to_text(pattern)}`"
