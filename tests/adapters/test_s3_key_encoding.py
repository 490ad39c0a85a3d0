"""The keys of a listing are read right in every way that stores write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from publish.adapters.s3.key_encoding import (
    ENCODINGS,
    FORM,
    PERCENT,
    RAW,
    KeyEncoding,
    UnknownEncoding,
    find_encodings,
    is_our_prefix,
)
from tests.support.dialect_proxy import as_aws, as_path, as_seaweedfs

# Few characters, so that keys meet that differ only in how they are written.
TEXTS = st.text(alphabet="+ %2B0aé/&=~", min_size=1, max_size=5)
ENCODERS = [as_aws, as_path, as_seaweedfs, quote, str]


class Lister:
    """Lists keys page by page as the adapter does, from a store that writes them in one way."""

    def __init__(self, keys: Iterable[str], encode: Callable[[str], str]) -> None:
        self._keys = sorted(keys)
        self._encode = encode
        self._known: Sequence[KeyEncoding] = ENCODINGS
        self.asked = 0

    def written(self, prefix: str) -> list[str]:
        return [self._encode(key) for key in self._keys if key.startswith(prefix)]

    def _ask(self, prefix: str) -> list[str]:
        self.asked += 1
        return self.written(prefix)[:1]

    def list(self, prefix: str, *, page_size: int = 1000, declared: bool = True) -> list[str]:
        written = self.written(prefix)
        decoded = []
        for start in range(0, len(written), page_size):
            page = written[start : start + page_size]
            found = find_encodings(page, prefix, declared=declared, ask=self._ask, known=self._known)
            assert found
            self._known = found
            decoded += [found[0].decode(key) for key in page]
        return decoded


@pytest.mark.parametrize("encode", ENCODERS)
@given(prefix=TEXTS, names=st.sets(TEXTS, min_size=1, max_size=6), page_size=st.integers(1, 3))
@example(prefix="a", names={"a+b"}, page_size=1)
@example(prefix="a", names={"a b"}, page_size=1)
@example(prefix="a", names={"a%2Bb"}, page_size=1)
@example(prefix="a+", names={"a%2Bb", "a b"}, page_size=2)
@example(prefix="%2B", names={"+"}, page_size=1)
def test_the_keys_of_every_page_are_found_whatever_their_encoding(
    encode: Callable[[str], str], prefix: str, names: set[str], page_size: int
) -> None:
    """s3.1: a store that says that it encodes its keys, and may not."""
    keys = {prefix + name for name in names}
    assert Lister(keys, encode).list(prefix, page_size=page_size) == sorted(keys)


@given(prefix=TEXTS, names=st.sets(TEXTS, min_size=1, max_size=5))
def test_keys_that_are_not_declared_encoded_are_raw(prefix: str, names: set[str]) -> None:
    """s3.1"""
    keys = {prefix + name for name in names}
    lister = Lister(keys, str)
    assert lister.list(prefix, declared=False) == sorted(keys)
    assert lister.asked == 0


@given(prefix=st.text(alphabet="a/-", min_size=1), names=st.sets(st.text(alphabet="abc-/123"), min_size=1))
def test_plain_keys_need_no_further_request(prefix: str, names: set[str]) -> None:
    """resolve.2: one LIST a page."""
    lister = Lister({prefix + name for name in names}, quote)
    assert len(lister.list(prefix)) == len(names)
    assert lister.asked == 0


@pytest.mark.parametrize("encode", ENCODERS)
def test_an_encoding_that_is_known_is_not_asked_for_again(encode: Callable[[str], str]) -> None:
    """s3.1"""
    lister = Lister({f"p/{number}+x" for number in range(10)}, encode)
    lister.list("p/", page_size=1)
    assert lister.asked <= 3


def test_a_store_that_encodes_otherwise_since_its_upgrade_is_understood() -> None:
    """s3.1: a watch outlives it."""
    assert find_encodings(["p%2Bq/a"], "p+q/", declared=True, ask=lambda _: [], known=[RAW]) == [PERCENT, FORM]


def test_a_key_outside_the_prefix_has_no_encoding() -> None:
    """s3.6"""
    assert not find_encodings(["q/a%2Bb"], "p/", declared=True, ask=lambda _: [])


def test_a_key_that_is_gone_before_its_encoding_is_known_is_listed_again() -> None:
    """s3.1: guessed wrong, the key of another object would be removed."""
    with pytest.raises(UnknownEncoding):
        find_encodings(["p/a+b"], "p/", declared=True, ask=lambda _: [])


@pytest.mark.parametrize("encode", ENCODERS)
@given(prefix=TEXTS)
def test_an_echoed_prefix_is_ours_raw_or_decoded_once(encode: Callable[[str], str], prefix: str) -> None:
    """s3.1"""
    assert is_our_prefix(encode(prefix), prefix)


@pytest.mark.parametrize(("echoed", "prefix"), [("other/", "p/"), ("a+b", "a%2Bb"), ("a%252Bb", "a+b")])
def test_another_prefix_is_not_ours(echoed: str, prefix: str) -> None:
    """s3.1, s3.6: decoded once, not twice."""
    assert not is_our_prefix(echoed, prefix)
