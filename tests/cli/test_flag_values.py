"""The values of flags: Go's durations, unsigned numbers and booleans (cli.1, cli.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.cli import goflag
from publish.domain.errors import UsageError

UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
LONGEST = 2**63 - 1


def as_text(nanoseconds: int) -> str:
    """As Go's Duration.String writes it, but never with a fraction below a second."""
    hours, rest = divmod(nanoseconds, UNITS["h"])
    minutes, rest = divmod(rest, UNITS["m"])
    seconds, rest = divmod(rest, UNITS["s"])
    return f"{hours}h{minutes}m{seconds}.{rest:09}s"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300ms", 0.3),
        ("10s", 10),
        ("1m30s", 90),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("5.s", 5),
        ("+5s", 5),
        ("1µs", 1e-6),
        ("1μs", 1e-6),
        ("1us", 1e-6),
        ("1ns", 1e-9),
        ("0010s", 10),
        ("1s1s1h", 3602),
        ("0s5ms", 0.005),
        ("0.000000001s", 1e-9),
        ("0" * 5000 + "7s", 7),
        ("7." + "0" * 5000 + "s", 7),
        ("2562047h47m16.854775807s", LONGEST / 1e9),
    ],
)
def test_durations_parse_as_in_go(text: str, seconds: float) -> None:
    """cli.2"""
    assert goflag.duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "+0", "0s", "0h0m", "-0s", "-5s", "+-5s", "++5s", "5", "5 s", " 5s", "5s ", "s", ".s", "+", ".",
        "5S", "5d", "1e3s", "1,5s", "5s5", "1.2.3s", "0x5s", "1_0s", "٣s", "5s\n", ".1ns", "0.0000000001s",
        "2562047h47m16.854775808s", "9223372037s", "9" * 30 + "h", "9" * 5000 + "s", "2562048h",
        "2562047h2562047h",
    ],
)  # fmt: skip
def test_other_texts_are_not_durations(text: str) -> None:
    """cli.2"""
    with pytest.raises(UsageError):
        goflag.duration(text)


@given(st.integers(1, LONGEST))
def test_every_duration_above_zero_parses_to_its_value(nanoseconds: int) -> None:
    assert goflag.duration(as_text(nanoseconds)) == nanoseconds / 10**9


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(UNITS))), min_size=1, max_size=5))
def test_the_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    total = sum(number * UNITS[unit] for number, unit in parts)
    if 0 < total <= LONGEST:
        assert goflag.duration(text) == total / 10**9
    else:
        with pytest.raises(UsageError):
            goflag.duration(text)


@given(st.text(st.sampled_from("0159.+-hmsunµ e_٣\n"), max_size=8))
def test_only_digits_and_units_make_a_duration(text: str) -> None:
    try:
        goflag.duration(text)
    except UsageError:
        return
    rest = text.removeprefix("+")
    for unit in ("ns", "us", "µs", "ms", "h", "m", "s"):
        rest = rest.replace(unit, "/")
    parts = rest.split("/")
    assert parts.pop() == ""
    assert all(part.replace(".", "", 1).isdecimal() and part.isascii() for part in parts)


@given(st.integers(0, 2**64 - 1), st.integers(0, 30))
def test_unsigned_numbers_may_have_leading_zeros(number: int, zeros: int) -> None:
    """cli.2"""
    assert goflag.unsigned("0" * zeros + str(number)) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1 ", "1\n", "0x1", "1_0", "1.0", "1e3", "٣", "²", "a"])
def test_only_ascii_digits_make_a_number(text: str) -> None:
    with pytest.raises(UsageError, match="not an unsigned decimal number"):
        goflag.unsigned(text)


@pytest.mark.parametrize("text", [str(2**64), "9" * 21, "9" * 5000])
def test_a_number_over_64_bits_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="over 2"):
        goflag.unsigned(text)


@pytest.mark.parametrize("text", ["0", "000"])
def test_zero_is_not_positive(text: str) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        goflag.positive(text)


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_go_spellings_of_true(text: str) -> None:
    """cli.1"""
    assert goflag.boolean(text) is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_go_spellings_of_false(text: str) -> None:
    """cli.1"""
    assert goflag.boolean(text) is False


@pytest.mark.parametrize("text", ["", "yes", "no", "on", "tRUE", "2", "true ", "01"])
def test_other_words_are_not_booleans(text: str) -> None:
    with pytest.raises(UsageError):
        goflag.boolean(text)
