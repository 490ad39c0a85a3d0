"""Strikes secrets out of a text, however each of their characters is spelled: plain, as in a URL or as in JSON.

Without `re`: a pattern for a token of a thousand characters takes longer to compile than a text takes to look through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

MARK = "…"

# A shorter secret is struck out only as a word of its own. No store gives out one; struck out of the
# middle of words it would make them unreadable, and the gaps would tell what it is.
_SHORTEST = 4

# ASCII alone: str.lower may change a text's length.
_LOWER = {code: code + 0x20 for code in range(ord("A"), ord("Z") + 1)}


class Redactor:
    """Secrets, none of which is left in a text that was struck. Safe to share between threads."""

    def __init__(self) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._forms: dict[str, tuple[str, ...]] = {}

    def add(self, secrets: Iterable[str]) -> None:
        """From now on these too are struck out, in either case; an empty one is none."""
        self._secrets |= {secret.translate(_LOWER) for secret in secrets} - {""}

    def strike(self, text: str) -> str:
        """`text` with `MARK` in place of each secret; of secrets that overlap nothing is left over."""
        if not self._secrets:
            return text
        kept, done, end = [], 0, 0
        lowered = text.translate(_LOWER)
        for start in range(len(text)):
            reached = self._end(lowered, start)
            if reached <= end:
                continue
            if start >= end:
                kept += [text[done:start], MARK]
            done = end = reached
        return "".join([*kept, text[done:]])

    def _end(self, text: str, start: int) -> int:
        """Where the longest secret ends that starts there; 0: none does."""
        return max((self._end_of(secret, text, start) for secret in self._secrets), default=0)

    def _end_of(self, secret: str, text: str, start: int) -> int:
        # More than one place only where a secret itself holds a % or a backslash.
        ends: Collection[int] = (start,)
        for char in secret:
            forms = self._forms.get(char)
            if forms is None:
                forms = self._forms[char] = _forms(char)
            ends = {end + len(form) for end in ends for form in forms if text.startswith(form, end)}
            if not ends:
                return 0
        if len(secret) >= _SHORTEST:
            return max(ends)
        if start and text[start - 1].isalnum():
            return 0
        return max((end for end in ends if not text[end : end + 1].isalnum()), default=0)


def _forms(char: str) -> tuple[str, ...]:
    """How a lower-case character may be spelled, in lower case: RFC 3986 section 2.1, RFC 8259 section 7; or twice."""
    forms = {char}
    backslashes = ("\\", "\\\\", "\\\\\\", "%5c")
    for one in {char, char.upper() if char.isascii() else char}:
        for sign in ("%", "%25"):
            forms.add("".join(f"{sign}{byte:02x}" for byte in one.encode("utf-8", "surrogatepass")))
        units = one.encode("utf-16-be", "surrogatepass").hex()
        for sign in backslashes:
            forms.add("".join(f"{sign}u{units[place : place + 4]}" for place in range(0, len(units), 4)))
    if char in '"/\\':
        forms |= {sign + form for sign in backslashes for form in forms}
    return tuple(forms)
