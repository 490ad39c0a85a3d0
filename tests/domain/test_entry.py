"""The entry codec is a bijection, and its order is the log's."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from publish.domain.entry import MAX_UINT64, Entry, overlap, validate_save_path
from publish.domain.errors import ConfigError, FormatError
from tests.support import strategies

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def named(path_text: bytes, epoch: bytes = b"0" * 20, step: bytes = b"0" * 20) -> bytes:
    return epoch + b"-" + step + b"-" + path_text


def encoded(path: bytes) -> bytes:
    return base64.b32encode(path).rstrip(b"=")


@given(strategies.entries)
def test_a_name_decodes_to_the_entry_that_it_encodes(entry: Entry) -> None:
    """layout.1, layout.2, layout.3."""
    assert Entry.parse(entry.name) == entry


@given(strategies.uint64s, strategies.uint64s, strategies.paths)
def test_a_name_is_two_padded_decimals_and_unpadded_base32(epoch: int, step: int, path: bytes) -> None:
    """layout.1: the reference is the standard library's base32."""
    assert Entry.of(epoch, step, path).name == f"{epoch:020}-{step:020}-".encode() + encoded(path)


@given(
    st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=40).map(lambda letters: named(bytes(letters))),
        st.tuples(strategies.entries, st.integers(0, 60), st.integers(0, 255)).map(
            lambda drawn: drawn[0].name[: drawn[1]] + bytes([drawn[2]]) + drawn[0].name[drawn[1] + 1 :]
        ),
    )
)
@example(named(b"MZ"))
def test_no_two_names_decode_to_one_entry(name: bytes) -> None:
    """layout.2."""
    try:
        entry = Entry.parse(name)
    except FormatError:
        return
    assert Entry.of(entry.epoch, entry.step, entry.path).name == name


@pytest.mark.parametrize(
    "name",
    [
        b"",
        named(b""),
        named(b"me"),
        named(b"ME======"),
        named(b"M"),
        named(b"MEA"),
        named(b"MEAAAAA" + b"A" * 7),
        named(b"MZ"),  # the trailing bits of b"f" are not zero
        named(b"ME", epoch=b"18446744073709551616"),
        named(b"ME", step=b"18446744073709551616"),
        named(b"ME", epoch=b"0" * 19),
        named(b"ME", epoch=b"+" + b"0" * 19),
        named(b"ME", epoch="\u0660".encode() * 10),
        named(b"ME") + b"\n",
        b" " + named(b"ME"),
        named(encoded(b"/a")),
        named(encoded(b"a/")),
        named(encoded(b"a//b")),
        named(encoded(b".")),
        named(encoded(b"a/..")),
        named(encoded(b"../a")),
        named(encoded(b"a/./b")),
        named(encoded(b"a\0b")),
        named(encoded(b"pub")),
        named(encoded(b"pub/a")),
        b".nfs0000",
        "\udcff".encode("utf-8", "surrogateescape"),
    ],
)
def test_an_unrecognised_name_is_refused_and_named(name: bytes) -> None:
    """layout.2, layout.4."""
    with pytest.raises(FormatError) as caught:
        Entry.parse(name)
    assert name.decode("utf-8", "surrogateescape") in str(caught.value)


@pytest.mark.parametrize("path", [b"public", b"a/pub", b"...", b"prune", b"a b", b"\xff", b"a\nb"])
def test_paths_that_only_resemble_reserved_ones_parse(path: bytes) -> None:
    """layout.2, layout.3, layout.8."""
    assert Entry.parse(named(encoded(path))).path == path


@pytest.mark.parametrize(
    ("epoch", "step", "path"),
    [(-1, 0, b"a"), (0, MAX_UINT64 + 1, b"a"), (0, 0, b""), (0, 0, b"/a"), (0, 0, b"pub/x"), (0, 0, b"a/../b")],
)
def test_a_value_that_no_name_can_encode_is_refused(epoch: int, step: int, path: bytes) -> None:
    """layout.2."""
    with pytest.raises(FormatError):
        Entry.of(epoch, step, path)


@given(st.lists(strategies.entries))
def test_the_order_is_by_epoch_and_step_and_then_by_the_whole_name(entries: list[Entry]) -> None:
    """layout.6: and so it is the byte order of names."""
    expected = sorted(entries, key=lambda entry: (entry.epoch, entry.step, entry.name))
    assert sorted(entries) == expected
    assert sorted(entries) == sorted(entries, key=lambda entry: entry.name)


@pytest.mark.parametrize("path", [b"a\nb", b"a\x7f", b"\x1b[2J", "a\x9b2J".encode(), "\x85".encode()])
def test_a_path_that_must_not_be_written_is_refused(path: bytes) -> None:
    """layout.8."""
    with pytest.raises(ConfigError):
        validate_save_path(path)


@pytest.mark.parametrize("path", [b"prune", b"prune/a", b"\xff", b"a b", b"\x9b", "\xa0".encode(), "\u06c2".encode()])
def test_other_paths_may_be_written(path: bytes) -> None:
    """layout.8."""
    validate_save_path(path)


def test_folders_that_share_letters_do_not_overlap() -> None:
    """prune.2, prune.3."""
    assert overlap(b"a", b"a")
    assert overlap(b"a/b", b"a")
    assert overlap(b"a", b"a/b/c")
    assert not overlap(b"checkpoint-1", b"checkpoint-10")
    assert not overlap(b"a/b", b"a/c")
