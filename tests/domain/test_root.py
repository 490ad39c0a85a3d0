"""What `-checkpoint` means, and where a save lies under it."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.errors import ConfigError
from publish.domain.root import PosixRoot, Root, S3Root, is_directory_path, is_s3_url, parse_directory, parse_s3_url
from tests.support import strategies

CWD = b"/home/u"


def is_same(one: bytes, other: bytes) -> bool:
    return True


def parse_root(text: bytes, cwd: bytes, is_same: Callable[[bytes, bytes], bool]) -> Root:
    return parse_s3_url(text) if is_s3_url(text) else parse_directory(text, cwd, is_same)


def nowhere(path: bytes) -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "root"),
    [
        (b"/ckpt", PosixRoot(b"/ckpt")),
        (b"/ckpt/", PosixRoot(b"/ckpt")),
        (b"//ckpt//run", PosixRoot(b"/ckpt/run")),
        (b"/", PosixRoot(b"/")),
        (b".", PosixRoot(b"/home/u")),
        (b"ckpt", PosixRoot(b"/home/u/ckpt")),
        (b"../ckpt/./x", PosixRoot(b"/home/ckpt/x")),
        (b"./a:b", PosixRoot(b"/home/u/a:b")),
        (b"/x/a:b", PosixRoot(b"/x/a:b")),
        (b"x/a:b", PosixRoot(b"/home/u/x/a:b")),
        (b"\xff", PosixRoot(b"/home/u/\xff")),
        (b"s3://ckpts/run-7", S3Root("ckpts", "run-7")),
        (b"s3://ckpts/run-7//", S3Root("ckpts", "run-7")),
        (b"s3://A._-z/a%20b/ c:d", S3Root("A._-z", "a%20b/ c:d")),
        (b"s3://" + b"b" * 255 + "/é".encode(), S3Root("b" * 255, "é")),
    ],
)
def test_a_root_is_a_directory_or_a_prefix(text: bytes, root: Root) -> None:
    """root.2, root.3, root.4."""
    assert parse_root(text, CWD, is_same) == root
    assert is_directory_path(text) is isinstance(root, PosixRoot)


def test_a_root_whose_dots_follow_a_link_is_taken_as_given() -> None:
    """root.4, resolve.3: where the text leads to another directory than the path does."""
    asked = []

    def differ(one: bytes, other: bytes) -> bool:
        asked.append((one, other))
        return False

    assert parse_root(b"link/.././/ckpt/", CWD, differ) == PosixRoot(b"/home/u/link/../ckpt")
    assert asked == [(b"/home/u/ckpt", b"/home/u/link/.././/ckpt/")]
    assert parse_root(b"./a..b//c", CWD, differ) == PosixRoot(b"/home/u/a..b/c")


@pytest.mark.parametrize("text", [b"gs://b/p", b"s3:/b", b"s3:b", b"file:/d", b"S3://b/p", b"a:b/c", b":", b"c:"])
def test_another_scheme_is_refused_with_the_way_out(text: bytes) -> None:
    """root.3."""
    with pytest.raises(ConfigError, match=r"write \./ in front"):
        parse_root(text, CWD, is_same)
    assert not is_directory_path(text)


@pytest.mark.parametrize(
    "text",
    [
        b"s3://",
        b"s3://b",
        b"s3://bucket",
        b"s3://bucket/",
        b"s3://bucket//",
        b"s3:///prefix",
        b"s3://ab/prefix",
        b"s3://" + b"b" * 256 + b"/p",
        b"s3://buc ket/p",
        "s3://bückét/p".encode(),
        b"s3://bucket\n/p",
        b"s3://bucket/a//b",
        b"s3://bucket//a",
        b"s3://bucket/./a",
        b"s3://bucket/a/..",
        b"s3://bucket/a?b",
        b"s3://bucket/a#b",
        b"s3://bucket/a\tb",
        b"s3://bucket/\x7f",
        b"s3://bucket/\xff",
    ],
)
def test_a_malformed_s3_root_is_refused(text: bytes) -> None:
    """root.2."""
    with pytest.raises(ConfigError):
        parse_root(text, CWD, is_same)


@given(strategies.paths)
def test_a_save_is_found_where_it_is_rendered(path: bytes) -> None:
    """publish.3, resolve.1."""
    for root in (PosixRoot(b"/ckpt"), PosixRoot(b"/")):
        assert root.render(path) == posixpath.join(root.path, path)
        assert root.locate(root.render(path), CWD, nowhere) == path


@given(st.from_regex(r"[a-z0-9%:.]+(/[a-z0-9%]+)*", fullmatch=True).map(str.encode))
def test_a_key_is_found_where_it_is_rendered(path: bytes) -> None:
    """root.2, publish.1: taken literally."""
    root = S3Root("bucket", "pre/fix")
    assert root.render(path) == b"s3://bucket/pre/fix/" + path
    assert root.locate(root.render(path) + b"/") == path


@pytest.mark.parametrize(
    ("save", "path"),
    [
        (b"/ckpt/a", b"a"),
        (b"/ckpt/a/", b"a"),
        (b"/ckpt", b""),
        (b"/ckpt/../ckpt/a/./b/../c", b"a/c"),
        (b"../../ckpt/a", b"a"),
    ],
)
def test_a_save_is_located_lexically(save: bytes, path: bytes) -> None:
    """publish.2, publish.3."""
    assert PosixRoot(b"/ckpt").locate(save, CWD, nowhere) == path


@pytest.mark.parametrize("save", [b"/ckptx/a", b"/", b"a", b"/ckpt/../a", b"s3://bucket/ckpt/a"])
def test_a_save_outside_the_root_is_refused(save: bytes) -> None:
    """publish.1, publish.3."""
    with pytest.raises(ConfigError):
        PosixRoot(b"/ckpt").locate(save, CWD, nowhere)


def one_of(*places: bytes) -> Callable[[bytes], bool]:
    return lambda path: path in places


def test_a_root_behind_a_link_is_found_from_both_sides_and_links_below_it_stay() -> None:
    """publish.3: the outermost way in counts, so what is a link below the root stays as given."""
    is_root = one_of(b"/mnt/real", b"/ckpt", b"/mnt/real/loop")
    assert PosixRoot(b"/ckpt").locate(b"/mnt/real/a", CWD, is_root) == b"a"
    assert PosixRoot(b"/ckpt").locate(b"/mnt/real", CWD, is_root) == b""
    assert PosixRoot(b"/ckpt").locate(b"/mnt/real/loop/a", CWD, is_root) == b"loop/a"


@pytest.mark.parametrize(
    "save",
    [
        b"s3://bucket/prefixed/a",
        b"s3://bucket/a",
        b"s3://other/prefix/a",
        b"/prefix/a",
        b"a",
        b"s3://bucket/prefix/\xff",
    ],
)
def test_what_is_not_an_url_under_the_root_is_refused(save: bytes) -> None:
    """publish.1, layout.3."""
    with pytest.raises(ConfigError):
        S3Root("bucket", "prefix").locate(save)


def test_an_s3_root_itself_is_located_as_the_empty_path() -> None:
    """watch.1."""
    root = S3Root("bucket", "prefix")
    assert root.locate(b"s3://bucket/prefix/") == b""
    assert root.render(b"") == b"s3://bucket/prefix"
