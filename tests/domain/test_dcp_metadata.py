from __future__ import annotations

import pickle
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.dcp_metadata import file_ends, is_json
from publish.domain.errors import FormatError
from tests.support.samples import sample

REAL = {
    "dcp/step-200/.metadata": {"__0_0.distcp": 1641, "__1_0.distcp": 2902},
    "dcp/step-100-overwritten/.metadata": {"__0_0.distcp": 7253},
    "dcp/killed-mid-overwrite/step-5/.metadata": {"__0_0.distcp": 6806},
    "dcp/nocoll-300/__0.metadata": {"__0_0.distcp": 2838},
    "dcp/s3-binaryprefix.metadata": {"0000000000/epoch_3/__0_0.distcp": 2838},
    "dcp/hf-fsdp2-sharded/checkpoint-7/optimizer_0/.metadata": {"__0_0.distcp": 1577, "__1_0.distcp": 14187},
}


# What PyTorch's classes look like to a pickler, and what another writer may bring.


@dataclass(frozen=True)
class Index:
    fqn: str
    offset: tuple[int, ...]


@dataclass
class Piece:
    relative_path: object
    offset: object
    length: object


@dataclass(slots=True)
class SlottedPiece:
    relative_path: object
    offset: object
    length: object
    transform_descriptors: object = None


class Unnamed(NamedTuple):
    relative_path: str
    offset: int
    length: int


@dataclass
class Metadata:
    state_dict_metadata: object
    planner_data: object
    storage_data: object


def metadata_of(pieces: object, protocol: int = 4) -> bytes:
    return pickle.dumps(Metadata({"w": (1, 2)}, None, pieces), protocol)


def indexed(*pieces: object) -> dict[Index, object]:
    return {Index("w", (number,)): piece for number, piece in enumerate(pieces)}


@pytest.mark.parametrize("name", REAL)
def test_the_files_of_what_torch_wrote_are_read_and_no_beginning_is(name: str) -> None:
    """verify.5, verify.6"""
    content = sample(name)
    assert file_ends(content) == REAL[name]
    for size in range(len(content)):
        with pytest.raises(FormatError):
            file_ends(content[:size])


@given(
    st.lists(st.tuples(st.text(max_size=3), st.integers(0, 2**62), st.integers(0, 2**61))),
    st.integers(2, 5),
    st.booleans(),
)
def test_the_last_piece_of_each_file_counts(pieces: list[tuple[str, int, int]], protocol: int, slotted: bool) -> None:  # noqa: FBT001  (drawn)
    """verify.6"""
    ends: dict[str, int] = {}
    for path, offset, length in pieces:
        ends[path] = max(ends.get(path, 0), offset + length)
    make = SlottedPiece if slotted else Piece
    assert file_ends(metadata_of(indexed(*(make(*piece) for piece in pieces)), protocol)) == ends


@pytest.mark.parametrize("pieces", [None, {}, [], indexed(None, 1, "text", Unnamed("a", 0, 1), Piece(b"a", 0, 1))])
def test_pieces_of_another_form_are_not_judged(pieces: object) -> None:
    """verify.6"""
    assert file_ends(metadata_of(pieces)) == {}


def test_a_piece_without_numbers_says_that_its_file_is_there() -> None:
    assert file_ends(metadata_of(indexed(Piece("a", None, None), Piece("b", 2**100, 1)))) == {"a": 0, "b": 0}


@pytest.mark.parametrize("piece", [Piece("a", -1, 5), Piece("a", 5, -1)])
def test_a_piece_before_the_start_of_its_file_is_broken(piece: Piece) -> None:
    with pytest.raises(FormatError, match=r"^a piece that has no place in its file: a$"):
        file_ends(metadata_of(indexed(piece)))


@pytest.mark.parametrize("root", [None, [], {"storage_data": {}}, Piece("a", 1, 2), "text"])
def test_a_pickle_of_something_else_is_broken(root: object) -> None:
    with pytest.raises(FormatError, match=r"^not the metadata of a distributed checkpoint: it has no storage_data$"):
        file_ends(pickle.dumps(root))


def test_pieces_that_share_their_state_are_looked_at_once() -> None:
    """verify.5: a state of 100,000 attributes, shared by 20,000 pieces, would be read 20,000 times."""
    state = b"}\x94(" + b"X\1\0\0\0xN" * 100_000 + b"X\x0d\0\0\0relative_pathX\1\0\0\0fu"
    pieces = b"}(" + b"Ncx\ny\n)\x81h\0b" * 20_000 + b"u"
    content = b"\x80\x02" + state + b"0cx\nM\n)\x81}X\x0c\0\0\0storage_data" + pieces + b"sb."
    assert file_ends(content) == {"f": 0}


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"{}", True), (b"\n [1]", True), (b"\x80\x04N.", False), (b"", False), (b"text", False)],
)
def test_metadata_of_another_program_is_told_by_its_start(content: bytes, expected: bool) -> None:  # noqa: FBT001  (a parameter of the test)
    assert is_json(content) is expected


@given(st.randoms(use_true_random=False))
def test_no_change_of_a_real_file_makes_the_reader_fail(chance: random.Random) -> None:
    """verify.5"""
    content = bytearray(sample("dcp/step-200/.metadata"))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(content))
        content[at : at + chance.choice([0, 1, 1, 8])] = chance.randbytes(chance.choice([0, 1, 1, 8]))
    with suppress(FormatError):
        file_ends(bytes(content))
