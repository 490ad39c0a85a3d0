"""A document that is cut off anywhere is distinguished from a broken one."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.errors import FormatError
from publish.domain.json_document import MAX_BYTES
from publish.domain.trainer_state import global_step

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["global_step", '"\\', "\ud800", "é", "\U0001f600"]),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
records = st.lists(st.dictionaries(st.sampled_from(["loss", "step", "epoch", "note"]), scalars, max_size=4), max_size=5)


@st.composite
def documents(draw: st.DrawFn) -> tuple[bytes, int]:
    """A document as Python's json writes it, and its step."""
    step = draw(st.integers(0, 2**64 - 1))
    members = list(draw(st.dictionaries(st.text(max_size=12), values, max_size=4)).items())
    members += [("log_history", draw(records)), ("global_step", step)]
    members = [(key, value) for key, value in draw(st.permutations(members)) if key != "global_step" or value == step]
    text = json.dumps(dict(members), indent=draw(st.sampled_from([None, 2])), ensure_ascii=draw(st.booleans()))
    return text.encode("utf-8", "replace") + draw(st.sampled_from([b"", b"\n", b" \t\r\n"])), step


def verdict(document: bytes) -> int | str | None:
    try:
        return global_step(document)
    except FormatError as fault:
        return str(fault)


@given(documents())
def test_a_whole_document_gives_its_step(document: tuple[bytes, int]) -> None:
    """watch.4: `NaN`, `Infinity`, `-Infinity` included."""
    text, step = document
    assert verdict(text) == step


@given(documents(), st.data())
def test_every_strict_prefix_is_still_being_written(document: tuple[bytes, int], data: st.DataObject) -> None:
    """watch.4."""
    text = document[0].rstrip()
    cut = data.draw(st.integers(0, len(text) - 1))
    assert verdict(text[:cut]) is None


def is_prefix_of_json(text: str) -> bool:
    """The reference: tries many endings. Slow, and independent of the code under test."""
    endings = ["", '"', "0", "rue", "alse", "ull", "aN", "nfinity", "1}", '":0}', ":0}", '"":0}', "0]", '"]']
    closings = ["", "}", "]", "]}", "}}", "}]", "]]"]
    partial = [literal[n:] for literal in ("true", "false", "null", "NaN", "Infinity") for n in range(1, len(literal))]
    escapes = ["", *("0" * n for n in range(5)), "n", *("u0000"[n:] for n in range(5))]
    for tail in [*endings, *partial, *(escape + '"' for escape in escapes), *(escape + '":0}' for escape in escapes)]:
        for closing in closings:
            try:
                json.loads(text + tail + closing)
            except ValueError:
                continue
            return True
    return False


damage = st.sampled_from([*'{}[]",:\\x0-+.eE \n\x00\x01', "nul", "1 1", '""', "\ufeff"])


@given(
    st.sampled_from(['{"a": [1.5e3, "x\\u00e9"], "global_step": 7}', '{"global_step":7,"b":{"c":-Infinity,"d":null}}']),
    st.data(),
)
def test_every_damaged_document_is_judged_as_by_the_reference(document: str, data: st.DataObject) -> None:
    """watch.4: cut off if some ending makes it a document, otherwise a fault."""
    at = data.draw(st.integers(0, len(document)))
    broken = document[:at] + data.draw(damage) + document[at + data.draw(st.integers(0, 2)) :]
    answer = verdict(broken.encode())
    try:
        whole = json.loads(broken)
    except ValueError:
        if answer is None:
            assert is_prefix_of_json(broken), broken
        else:
            assert isinstance(answer, str), broken
            assert not is_prefix_of_json(broken) or answer == "not an object", broken
        return
    step = whole.get("global_step") if isinstance(whole, dict) else None
    assert answer == step if type(step) is int else isinstance(answer, str)


@pytest.mark.parametrize(
    "text", [b"", b" \n", b"{", b'{"a', b'{"a"', b'{"a":', b"tru", b'"a', b"[1", b'{"a":-', b'{"a":"\\u12']
)
def test_an_empty_file_and_a_beginning_are_cut_off(text: bytes) -> None:
    """watch.4: only white space counts as cut off."""
    assert verdict(text) is None


def test_a_wrong_step_in_a_cut_off_document_does_not_matter_yet() -> None:
    """watch.4."""
    assert verdict(b'{"global_step": "wrong", ') is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"12", "not an object"),
        (b"true", "not an object"),
        (b'"text"', "not an object"),
        (b'["global_step"]', "not an object"),
        (b"{}", "no 64-bit integer global_step"),
        (b'{"global_step": 7.0}', "no 64-bit integer global_step"),
        (b'{"global_step": true}', "no 64-bit integer global_step"),
        (b'{"global_step": "7"}', "no 64-bit integer global_step"),
        (b'{"global_step": {"global_step": 7}}', "no 64-bit integer global_step"),
        (b'{"a": {"global_step": 7}}', "no 64-bit integer global_step"),
        (b'{"global_step": 7, "global_step": null}', "no 64-bit integer global_step"),
        (b'{"global_step": ' + b"1" * 30 + b"}", "no 64-bit integer global_step"),
        (b'{"global_step": 7} x', "unexpected data after the document at character 19"),
        (b'{"global_step": 7}{', "unexpected data after the document at character 18"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": \xff', "not UTF-8"),
        (b"{\xc3", "not JSON at character 1"),
        (b'{"a": 01}', "not JSON at character 7"),
        (b'{"a": nux', "not JSON at character 6"),
        (b"\0", "not JSON at character 0"),
        (b"{'a': 1}", "not JSON at character 1"),
        (b'{"a": 1,}', "not JSON at character 8"),
        (b'{"a": "\n"}', "not JSON at character 7"),
        (b'{"a": "\\x"}', "not JSON at character 7"),
        (b'{"a": "x\\u12\xc3', "not JSON"),
        (b'{"a": "x\\\xc3', "not JSON"),
        (b'{"a": 1 .', "not JSON"),
        (b'{"a": 1.5.', "not JSON"),
        (b"{1.", "not JSON"),
        (b"[1e5e", "not JSON"),
        (b"[true1", "not JSON"),
        (b'[1, "a"1', "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 4301, "too many digits"),
    ],
)
def test_any_other_fault_is_named(text: bytes, fault: str) -> None:
    """watch.4."""
    answer = verdict(text)
    assert isinstance(answer, str)
    assert fault in answer


def test_the_last_of_a_repeated_key_counts_even_if_it_is_escaped() -> None:
    """watch.4."""
    assert verdict(b'{"global_step": "x", "global_step": 7}') == 7
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in "global_step")
    assert verdict(f'{{"global_step": 1, "{escaped}": 7, "{escaped}0": 8}}'.encode()) == 7


def test_deep_nesting_and_the_longest_integer_are_read() -> None:
    """watch.4: Python's own limits, 4,300 digits and a recursion of about 1,000."""
    deep = "[" * 500 + "]" * 500
    assert verdict(f'{{"global_step": 7, "deep": {deep}, "long": {"1" * 4300}}}'.encode()) == 7


def test_the_largest_state_is_read_and_a_larger_one_refused() -> None:
    """watch.4."""
    document = b'{"global_step": 7}'
    assert global_step(document + b" " * (MAX_BYTES - len(document))) == 7
    with pytest.raises(FormatError, match=re.escape(f"larger than {MAX_BYTES} bytes")):
        global_step(document + b" " * (MAX_BYTES - len(document) + 1))


@given(st.binary(max_size=30))
def test_any_bytes_give_an_answer_or_a_fault(text: bytes) -> None:
    """watch.4: never another exception."""
    answer = verdict(text)
    if isinstance(answer, int):
        assert json.loads(text)["global_step"] == answer
