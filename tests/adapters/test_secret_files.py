"""creds.1, creds.2, vault.7: secrets in files of this node."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.adapters.secret_files import (
    SecretDirectory,
    read_private_directory,
    read_secret_file,
)
from publish.domain.credentials import Credentials
from publish.domain.errors import SourceUnavailable
from tests.support.kubelet import MountedSecret
from tests.support.private_files import write_private, write_private_directory
from tests.support.secret_sources import (
    CANARY,
    CREDENTIALS,
    KEYS,
    Read,
    private,
    refusal,
    secret,
    without_privilege,
)


def test_one_file_per_field_is_read(read: Read, directory: Path) -> None:
    """creds.1, creds.2."""
    assert read(directory) == CREDENTIALS
    fields = {"session_token": "token\n", "endpoint": "http://s3.example:9000\n", "region": "eu-central-1\n"}
    write_private_directory(directory, fields)
    assert read(directory) == Credentials("AKIDEXAMPLE", CANARY, "token", "http://s3.example:9000", "eu-central-1")


def test_a_missing_directory_is_unavailable(read: Read, top: Path) -> None:
    """creds.1."""
    for path in (top / "none", top / "none" / "s3"):
        with pytest.raises(SourceUnavailable, match=r"^directory not found$"):
            read(path)


def test_a_tilde_that_the_shell_left_is_explained(read: Read) -> None:
    """creds.7."""
    with pytest.raises(
        SourceUnavailable, match=r"^directory not found \(~ is not expanded, give the whole path\): /.*~/k$"
    ):
        read(Path("/home/job/~/k"))


def test_a_dangling_symlink_as_the_directory_is_an_error(read: Read, top: Path) -> None:
    """creds.1."""
    (top / "s3").symlink_to("nowhere")
    assert refusal(lambda: read(top / "s3")) == f"dangling symlink: {top}/s3"
    source = SecretDirectory("secret:s3/", os.fsencode(top / "s3") + b"/")
    assert "dangling symlink" in refusal(lambda: source.read(1))


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_a_file_as_the_directory_is_an_error(read: Read, top: Path, make: Callable[[Path], None]) -> None:
    """creds.1: a FIFO does not hang it."""
    make(top / "s3")
    assert refusal(lambda: read(top / "s3")) == f"not a directory: {top}/s3"


def test_a_link_to_a_directory_is_followed(read: Read, directory: Path, top: Path) -> None:
    (top / "link").symlink_to("s3")
    assert read(top / "link") == CREDENTIALS


def test_a_directory_whose_name_is_not_utf8_is_read(read: Read, directory: Path) -> None:
    other = directory.rename(os.fsdecode(os.fsencode(directory) + b"\xff"))
    assert read(other) == CREDENTIALS


def test_a_directory_that_cannot_be_opened_is_an_error(top: Path) -> None:
    """creds.1: unreadable is present."""
    write_private_directory(top / "s3", KEYS)
    (top / "s3").chmod(0o000)
    with without_privilege():
        said = refusal(lambda: secret(top / "s3"))
    assert said == f"cannot open the directory (Permission denied): {top}/s3"


def test_a_directory_that_cannot_be_searched_is_an_error(top: Path) -> None:
    write_private_directory(top / "s3", KEYS)
    (top / "s3").chmod(0o444)
    with without_privilege():
        said = refusal(lambda: secret(top / "s3"))
    assert "Permission denied" in said


def test_a_file_that_cannot_be_opened_is_an_error_that_names_it(top: Path) -> None:
    write_private_directory(top / "s3", KEYS)
    (top / "s3").chmod(0o755)
    (top / "s3" / "access_key_id").chmod(0o644)
    (top / "s3" / "secret_access_key").chmod(0o000)
    with without_privilege():
        said = refusal(lambda: secret(top / "s3"))
    assert said == "cannot open the file (Permission denied): secret_access_key"


@pytest.mark.parametrize("name", ["other", ".hidden", "access_key_id~", "AWS_REGION", "a\udcff", "kubeconfig"])
def test_any_other_file_is_refused_and_named(read: Read, directory: Path, name: str) -> None:
    """creds.2."""
    (directory / name).write_text(CANARY)
    said = refusal(lambda: read(directory))
    assert said.startswith("unknown field (")
    assert said.endswith(f"session_token): {name}")


def test_only_a_mounted_secret_ignores_names_that_start_with_two_dots(directory: Path) -> None:
    """creds.1."""
    (directory / "..2026_11_29").mkdir()
    (directory / "..file").touch()
    assert secret(directory) == CREDENTIALS
    assert refusal(lambda: private(directory)).endswith(": ..2026_11_29")


def test_the_kubelets_layout_is_not_a_private_directory(top: Path) -> None:
    """creds.1: a name starting `..` is refused there as any other."""
    MountedSecret(top / "s3", KEYS)
    (top / "s3").chmod(0o700)
    assert refusal(lambda: private(top / "s3")).endswith(": ..2026_11_29_00_00_00.0")


@pytest.mark.parametrize("name", ["region", "other"])
def test_a_subdirectory_is_refused(read: Read, directory: Path, name: str) -> None:
    """creds.2."""
    (directory / name).mkdir()
    assert name in refusal(lambda: read(directory))


def test_a_missing_field_is_named(read: Read, directory: Path) -> None:
    """creds.2."""
    (directory / "access_key_id").unlink()
    assert refusal(lambda: read(directory)) == "missing field: access_key_id"


def test_an_empty_directory_is_an_error(read: Read, top: Path) -> None:
    """creds.2."""
    write_private_directory(top / "s3", {})
    assert "missing field" in refusal(lambda: read(top / "s3"))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"canary-7f3a\n\n", "whitespace"),
        (b"canary-7f3a\r\n", "whitespace"),
        (b"canary-7f3a ", "whitespace"),
        (b" canary-7f3a", "whitespace"),
        (b"canary-7f3a\0", "unprintable"),
        (b"\xef\xbb\xbfcanary-7f3a", "unprintable"),
        (b"canary-7f3a\xff", "not UTF-8"),
        (b"canary-7f3a".ljust(64 * 1024 + 1, b"a"), "larger than 64 KiB"),
    ],
)
def test_an_invalid_value_is_refused_and_its_field_is_named(
    read: Read, directory: Path, content: bytes, fault: str
) -> None:
    """creds.2, cli.9."""
    (directory / "secret_access_key").write_bytes(content)
    said = refusal(lambda: read(directory))
    assert fault in said
    assert said.endswith(": secret_access_key")


def test_one_trailing_newline_is_dropped_and_64_kib_are_accepted(read: Read, directory: Path) -> None:
    """creds.2."""
    write_private(directory / "session_token", "a" * (64 * 1024 - 1) + "\n")
    assert read(directory).session_token == "a" * (64 * 1024 - 1)


def test_a_fifo_is_refused_and_does_not_block(read: Read, directory: Path) -> None:
    """creds.2."""
    os.mkfifo(directory / "region")
    assert refusal(lambda: read(directory)) == "not a regular file: region"


def test_a_socket_is_refused(read: Read, directory: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "region"))
        assert "cannot open the file" in refusal(lambda: read(directory))


@pytest.mark.parametrize("target", ["nowhere", "../elsewhere", "secret_access_key", "/dev/zero"])
def test_a_symlink_as_a_field_is_refused(target: str, read: Read, directory: Path, top: Path) -> None:
    """creds.1: it could lead to a file for another purpose."""
    write_private(top / "elsewhere", CANARY)
    (directory / "region").symlink_to(target)
    assert refusal(lambda: read(directory)) == "the file is a symlink: region"


def test_no_descriptor_is_left_open(read: Read, directory: Path, top: Path) -> None:
    mounted = MountedSecret(top / "mounted", KEYS)
    before = os.listdir("/proc/self/fd")
    secret(mounted.directory)
    read(directory)
    (directory / "region").mkdir()
    refusal(lambda: read(directory))
    assert os.listdir("/proc/self/fd") == before


def test_an_approle_directory_is_checked_like_a_private_one(top: Path) -> None:
    """vault.2, vault.7."""
    fields = ("role_id", "secret_id")
    path = write_private_directory(top / "approle", {"role_id": "r\n", "secret_id": f"{CANARY}\n"})

    def read_it() -> dict[str, str]:
        return read_private_directory(os.fsencode(path), fields)

    assert read_it() == {"role_id": "r", "secret_id": CANARY}
    (path / "other").touch()
    assert refusal(read_it) == "unknown field (expected role_id, secret_id): other"
    (path / "other").unlink()
    write_private(path / "secret_id", f"{CANARY} ")
    assert refusal(read_it) == "field contains whitespace: secret_id"
    (path / "secret_id").unlink()
    assert refusal(read_it) == "missing field: secret_id"
    path.chmod(0o750)
    assert "group or others" in refusal(read_it)
    with pytest.raises(SourceUnavailable):
        read_private_directory(os.fsencode(top / "none"), fields)


def test_a_missing_token_file_is_unavailable_and_any_other_fault_is_an_error(top: Path) -> None:
    """vault.4, vault.7."""
    path = top / "token"

    def read_it() -> str:
        return read_secret_file(os.fsencode(path), "token")

    with pytest.raises(SourceUnavailable, match=f"token file not found: {path}"):
        read_it()
    path.symlink_to("nowhere")
    assert refusal(read_it) == f"token file is a dangling symlink: {path}"
    path.unlink()
    path.mkdir()
    assert refusal(read_it) == "not a regular file: token"
    path.rmdir()
    os.mkfifo(path)
    assert refusal(read_it) == "not a regular file: token"
    path.unlink()
    for content, fault in [
        ("", "empty"),
        ("\n", "empty"),
        (f"{CANARY}\n\n", "whitespace"),
        (f"{CANARY} x", "whitespace"),
        (CANARY * 10_000, "larger than 64 KiB"),
    ]:
        path.write_text(content)
        assert fault in refusal(read_it)
    path.write_text(f"{CANARY}\n")
    assert read_it() == CANARY
    path.chmod(0o000)
    with without_privilege():
        assert refusal(read_it) == f"cannot open the token file (Permission denied): {path}"
