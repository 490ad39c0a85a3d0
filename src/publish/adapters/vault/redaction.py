"""What a server says, made fit to be shown: no secret known so far, one line, not too long (V8)."""

from __future__ import annotations

from publish.domain.redaction import Redactor

_LONGEST = 500


class Secrets:
    """The secrets known so far: what was sent, and what came back."""

    def __init__(self) -> None:
        self._concealed = Redactor()

    def add(self, *values: str) -> None:
        """From now on these are struck out, also where a server wrote them in JSON's or a URL's way."""
        self._concealed.add(values)

    def strike(self, text: str) -> str:
        """One line of at most 500 characters without any of them."""
        text = self._concealed.strike(text)
        line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"
