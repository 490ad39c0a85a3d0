"""What Hypothesis draws: numbers, paths, entries."""

from __future__ import annotations

from hypothesis import strategies as st

from publish.domain.entry import MAX_UINT64, RESERVED, Entry, has_control_characters

uint64s = st.one_of(st.integers(0, MAX_UINT64), st.integers(0, 12), st.integers(MAX_UINT64 - 2, MAX_UINT64))

_segments = st.one_of(
    st.binary(min_size=1, max_size=12).filter(lambda part: part not in (b".", b"..") and not set(part) & {0, 0x2F}),
    st.sampled_from(
        [
            b"pub",
            b".publish",
            b"prune",
            b"exec",
            b"a",
            b"...",
            b".metadata",
            b"checkpoint-1",
            b"checkpoint-10",
            b"\xff\xfe",
            b"\n",
        ]
    ),
)
paths = (
    st.lists(_segments, min_size=1, max_size=5).map(b"/".join).filter(lambda path: path.split(b"/")[0] not in RESERVED)
)
entries = st.builds(Entry.of, uint64s, uint64s, paths)
# What resolve and prune can print.
printable_entries = entries.filter(lambda entry: not has_control_characters(entry.path))
