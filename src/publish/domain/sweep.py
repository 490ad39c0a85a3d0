"""Pruning: entries first, then the saves that nobody names any more.

At every moment a save that an entry in `pub/` names is whole, and a save whose entry is gone
is on record in `prune/` until it is gone too: killed anywhere, the next prune finishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from publish.domain.entry import Entry, spell
from publish.domain.errors import AlreadyThere, BehindLink, Malformed, Misconfigured, OutcomeUnknown, StoreFault
from publish.domain.ports import Area, Parallel, Report, Store
from publish.domain.requests import Requests, entries
from publish.domain.saves import MARKERS
from publish.domain.selection import Folder, Reason, plan, rotate

# Names that one request may remove (AWS, DeleteObjects).
_BATCH = 1000


class _Fate(Enum):
    """What became of one save."""

    ABSENT = 0
    GONE = 1
    LEFT = 2
    FAILED = 3
