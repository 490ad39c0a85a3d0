"""What Go takes for a boolean and for a duration's unit."""

from __future__ import annotations

from itertools import pairwise

from publish.domain.go_syntax import FALSE, NANOSECONDS, TRUE


def test_no_word_is_true_and_false() -> None:
    """cli.1"""
    assert {word.lower() for word in TRUE} == {"1", "t", "true"}
    assert {word.lower() for word in FALSE} == {"0", "f", "false"}


def test_each_unit_is_what_it_is_of_the_next() -> None:
    """cli.1"""
    lengths = [NANOSECONDS[unit] for unit in ("ns", "us", "ms", "s", "m", "h")]
    assert [longer // shorter for shorter, longer in pairwise(lengths)] == [1000, 1000, 1000, 60, 60]
    assert NANOSECONDS["\u00b5s"] == NANOSECONDS["\u03bcs"] == NANOSECONDS["us"]
