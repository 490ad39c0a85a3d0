"""The keys of a listing are read right in every way that stores write them."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from publish.adapters.s3.key_encoding import KeyEncoding, UnknownEncoding, find_encoding, is_our_prefix
from tests.support.dialect_proxy import as_aws, as_path

# Few characters, so that keys meet that differ only in how they are written.
TEXTS = st.text(alphabet="+ %2B0aé/&=~", min_size=1, max_size=5)


def as_seaweedfs(key: str) -> str:
    """SeaweedFS 4.48: a blank is `+` in the last part of a key, and %20 before it."""
    folder, slash, name = key.rpartition("/")
    return quote(folder) + slash + quote_plus(name)


ENCODERS: list[Callable[[str], str]] = [as_aws, as_path, as_seaweedfs, quote, str]


class Keys:
    """A store's keys, and how it writes them."""

    def __init__(self, keys: list[str], encode: Callable[[str], str]) -> None:
        self._keys = sorted(keys)
        self._encode = encode
        self.asked = 0

    def written(self, prefix: str) -> list[str]:
        return [self._encode(key) for key in self._keys if key.startswith(prefix)]

    def ask(self, prefix: str) -> list[str]:
        self.asked += 1
        return self.written(prefix)[:1]


@pytest.mark.parametrize("encode", ENCODERS)
@given(prefix=TEXTS, names=st.lists(TEXTS, min_size=1, max_size=5, unique=True))
@example(prefix="a", names=["a+b"])
@example(prefix="a", names=["a b"])
@example(prefix="a", names=["a%2Bb"])
@example(prefix="a+", names=["a%2Bb", "a b"])
@example(prefix="%2B", names=["+"])
def test_the_keys_of_a_page_are_found_whatever_its_encoding(
    encode: Callable[[str], str], prefix: str, names: list[str]
) -> None:
    """s3.1: a store that says that it encodes its keys, and may not."""
    keys = sorted(prefix + name for name in names)
    store = Keys(keys, encode)
    found = find_encoding(store.written(prefix), prefix, declared=True, ask=store.ask)
    assert found is not None
    assert [found.decode(key) for key in store.written(prefix)] == keys


@given(prefix=TEXTS, names=st.lists(TEXTS, min_size=1, max_size=5, unique=True))
def test_keys_that_are_not_declared_encoded_are_raw(prefix: str, names: list[str]) -> None:
    """s3.1"""
    keys = [prefix + name for name in names]
    store = Keys(keys, str)
    found = find_encoding(keys, prefix, declared=False, ask=store.ask)
    assert found is not None
    assert [found.decode(key) for key in keys] == keys
    assert store.asked == 0


@given(prefix=st.text(alphabet="a/-", min_size=1), names=st.lists(st.text(alphabet="abc-/123"), min_size=1))
def test_plain_keys_need_no_further_request(prefix: str, names: list[str]) -> None:
    """resolve.2: one LIST a page."""
    store = Keys([prefix + name for name in names], str)
    assert find_encoding(store.written(prefix), prefix, declared=True, ask=store.ask) is not None
    assert store.asked == 0


@pytest.mark.parametrize("encode", ENCODERS)
def test_an_encoding_that_is_known_is_not_asked_for_again(encode: Callable[[str], str]) -> None:
    """s3.1"""
    store = Keys(["p/a+b", "p/c+d"], encode)
    known: KeyEncoding | None = None
    for _ in range(3):
        known = find_encoding(store.written("p/"), "p/", declared=True, ask=store.ask, known=known)
    assert store.asked <= 3


def test_a_key_outside_the_prefix_has_no_encoding() -> None:
    """s3.6"""
    assert find_encoding(["q/a%2Bb"], "p/", declared=True, ask=lambda _: []) is None


def test_a_key_that_is_gone_before_its_encoding_is_known_is_listed_again() -> None:
    """s3.1: guessed wrong, the key of another object would be removed."""
    with pytest.raises(UnknownEncoding):
        find_encoding(["p/a+b"], "p/", declared=True, ask=lambda _: [])


@given(prefix=TEXTS)
def test_an_echoed_prefix_is_ours_raw_or_decoded_once(prefix: str) -> None:
    """s3.1"""
    for encode in ENCODERS:
        assert is_our_prefix(encode(prefix), prefix)


@pytest.mark.parametrize(("echoed", "prefix"), [("other/", "p/"), ("a+b", "a%2Bb"), ("a%252Bb", "a+b")])
def test_another_prefix_is_not_ours(echoed: str, prefix: str) -> None:
    """s3.1, s3.6: decoded once, not twice."""
    assert not is_our_prefix(echoed, prefix)
