"""What a server says, made fit to be shown: no secret known so far, one line, not too long (V8)."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

_LONGEST = 500


class Secrets:
    """The secrets known so far: what was sent, and what came back."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def add(self, *values: str) -> None:
        """From now on these are struck out, also where a server wrote them in JSON's or a URL's way."""
        for value in values:
            self._texts |= {value, json.dumps(value)[1:-1], quote(value, safe="", errors="replace")} - {""}

    def strike(self, text: str) -> str:
        """One line of at most 500 characters without any of them."""
        if self._texts:
            # The longest first: one secret may begin as another does.
            pattern = "|".join(map(re.escape, sorted(self._texts, key=len, reverse=True)))
            text = re.sub(pattern, "[struck out]", text, flags=re.IGNORECASE)
        line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"
