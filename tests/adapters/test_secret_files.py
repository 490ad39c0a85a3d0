"""creds.1, creds.2, creds.5, vault.7: secrets in files of this node."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from publish.adapters.secret_files import (
    PrivateDirectory,
    SecretDirectory,
    read_private_directory,
    read_secret_file,
)
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, SourceUnavailable
from tests.support.kubelet import MountedSecret
from tests.support.private_files import write_private, write_private_directory

P = ParamSpec("P")
T = TypeVar("T")

CANARY = "canary-7f3a"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": CANARY}
CREDENTIALS = Credentials("AKIDEXAMPLE", CANARY, None, None, "us-east-1")
SOMEBODY = 65534

Read = Callable[[Path], Credentials]


def secret(path: Path) -> Credentials:
    return SecretDirectory(f"secret:{path}", os.fsencode(path)).read(1)


def private(path: Path) -> Credentials:
    return PrivateDirectory(f"file:{path}", os.fsencode(path)).read(1)


@pytest.fixture(params=[secret, private])
def read(request: pytest.FixtureRequest) -> Read:
    """Both kinds of directory: what is said of files holds for each."""
    chosen: Read = request.param
    return chosen


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder that another user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def directory(top: Path) -> Path:
    return write_private_directory(top / "s3", KEYS)


@contextmanager
def without_privilege() -> Iterator[None]:
    """Root may read everything, so what cannot be read is tried as somebody else."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(SOMEBODY)
    try:
        yield
    finally:
        os.seteuid(mine)


def refusal(read: Callable[[], object]) -> str:
    """What is said of something that is there and wrong."""
    with pytest.raises(CredentialsError) as raised:
        read()
    assert not isinstance(raised.value, SourceUnavailable)
    assert CANARY not in "".join(traceback.format_exception(raised.value))
    fault: BaseException | None = raised.value
    while fault is not None:
        assert CANARY not in repr(vars(fault)) + repr(fault.args)
        fault = fault.__context__
    return str(raised.value)


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
        read(Path("/work/~/k"))


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


# Modes and owners


@pytest.mark.parametrize("mode", [0o701, 0o702, 0o704, 0o710, 0o720, 0o740, 0o755, 0o777])
def test_a_directory_open_to_others_is_refused_with_its_mode(directory: Path, mode: int) -> None:
    """creds.1."""
    directory.chmod(mode)
    said = refusal(lambda: private(directory))
    assert said.startswith("group or others have access to the directory")
    assert said.endswith(f"mode: {mode:04o}")


@pytest.mark.parametrize("mode", [0o700, 0o500, 0o1700, 0o2700])
def test_a_directory_accessible_only_to_its_owner_is_accepted(directory: Path, mode: int) -> None:
    """creds.1."""
    directory.chmod(mode)
    assert private(directory) == CREDENTIALS


def test_the_mode_of_the_directory_of_a_mounted_secret_is_not_checked(directory: Path) -> None:
    """creds.1: the kubelet makes it 1777."""
    directory.chmod(0o1777)
    assert secret(directory) == CREDENTIALS


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o601, 0o660, 0o606])
def test_a_file_open_to_others_in_a_private_directory_is_refused(mode: int, directory: Path) -> None:
    """creds.1"""
    (directory / "secret_access_key").chmod(mode)
    said = refusal(lambda: private(directory))
    assert said == f"group or others have access to the file (run chmod 600), mode {mode:04o}: secret_access_key"


def test_a_file_that_others_can_write_in_a_mounted_secret_is_refused(directory: Path) -> None:
    """creds.1: reading is up to the defaultMode of the pod."""
    (directory / "secret_access_key").chmod(0o644)
    assert secret(directory) == CREDENTIALS
    for mode in (0o660, 0o646):
        (directory / "secret_access_key").chmod(mode)
        said = refusal(lambda: secret(directory))
        assert said == (
            f"group or others have write permission for the file (run chmod go-w), mode {mode:04o}: secret_access_key"
        )


def test_a_file_with_a_second_name_is_refused(read: Read, directory: Path, top: Path) -> None:
    """creds.1: a link to another file of the user, made by someone who cannot read it."""
    (top / "other").hardlink_to(directory / "secret_access_key")
    assert refusal(lambda: read(directory)) == "the file has 2 hard links: secret_access_key"


def test_a_file_of_another_user_is_refused(read: Read, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """creds.1. Only root could give a file away, so the numbers are the test's own."""
    fstat = os.fstat

    def owned(descriptor: int) -> os.stat_result:
        status = list(fstat(descriptor))
        if stat.S_ISREG(int(status[0])):
            status[4] = 1000
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", owned)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    said = refusal(lambda: read(directory))
    assert said == "the file belongs to neither you (0) nor root, but to user 1000: access_key_id"


def test_the_check_applies_to_the_target_of_a_symlink(directory: Path, top: Path) -> None:
    (top / "link").symlink_to("s3")
    directory.chmod(0o755)
    assert "group or others" in refusal(lambda: private(top / "link"))


@pytest.mark.parametrize(("owner", "user", "taken"), [(0, 1000, True), (1000, 1000, True), (1000, 0, False)])
def test_a_private_directory_belongs_to_the_user_running_or_to_root(
    directory: Path, monkeypatch: pytest.MonkeyPatch, owner: int, user: int, *, taken: bool
) -> None:
    """creds.1. Only root could give a directory away, so the two numbers are the test's own."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    fstat = os.fstat

    def owned(descriptor: int) -> os.stat_result:
        status = list(fstat(descriptor))
        status[4] = owner
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", owned)
    if taken:
        assert private(directory) == CREDENTIALS
    else:
        assert refusal(lambda: private(directory)) == "the directory belongs to neither you (0) nor root; owner: 1000"


def test_the_checked_directory_is_the_one_that_is_read(
    directory: Path, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """creds.1: swapped for an open one between the check and the read, the open one is not read."""
    write_private_directory(top / "other", {"access_key_id": "EVIL", "secret_access_key": "EVIL"})
    listdir = os.listdir

    def swap(descriptor: int) -> list[str]:
        directory.rename(top / "away")
        (top / "other").rename(directory)
        return listdir(descriptor)

    monkeypatch.setattr(os, "listdir", swap)
    assert private(directory) == CREDENTIALS


# Files


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


# The kubelet's generations


def keys(number: int) -> dict[str, str]:
    """A generation whose fields tell each other apart; only odd ones have a session token."""
    fields = {"access_key_id": f"AKID{number}", "secret_access_key": f"{CANARY}-{number}"}
    return {**fields, "session_token": f"token{number}"} if number % 2 else fields


def credentials(number: int) -> Credentials:
    fields = keys(number)
    return Credentials(
        fields["access_key_id"], fields["secret_access_key"], fields.get("session_token"), None, "us-east-1"
    )


def test_a_mounted_secret_is_read_before_and_after_an_update(top: Path) -> None:
    """creds.5."""
    mounted = MountedSecret(top / "s3", keys(0))
    assert secret(mounted.directory) == credentials(0)
    mounted.swap(keys(1))
    assert secret(mounted.directory) == credentials(1)


@pytest.mark.parametrize("moment", ["open ..data", "list", "open access_key_id", "open secret_access_key", "end"])
@pytest.mark.parametrize("number", [1, 2])
def test_fields_are_of_one_generation_whenever_an_update_happens(
    top: Path, monkeypatch: pytest.MonkeyPatch, moment: str, number: int
) -> None:
    """creds.5: the generation that came meanwhile is the answer, old files removed or not."""
    mounted = MountedSecret(top / "s3", keys(number - 1))
    pending = [number]

    def happens(what: str) -> None:
        if what == moment and pending:
            mounted.swap(keys(pending.pop()))

    def before(function: Callable[P, T], what: Callable[[object], str]) -> Callable[P, T]:
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            happens(what(args[0]))
            return function(*args, **kwargs)

        return wrapped

    def opened(path: object) -> str:
        return "open ..data" if str(path).startswith("..2026") else f"open {path}"

    def listed(descriptor: object) -> str:
        inside = isinstance(descriptor, int) and "/..2026" in os.readlink(f"/proc/self/fd/{descriptor}")
        return "list" if inside else "list another"

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", before(os.open, opened))
        patch.setattr(os, "listdir", before(os.listdir, listed))
        patch.setattr(os, "stat", before(os.stat, lambda path: "end"))
        answer = secret(mounted.directory)
    assert pending == []
    assert answer == credentials(number)


def test_fields_are_of_one_generation_during_constant_updates(top: Path) -> None:
    """creds.5."""
    mounted = MountedSecret(top / "s3", keys(0))
    enough = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        for number in cycle(range(1, 10)):
            if enough.is_set():
                return
            mounted.swap(keys(number))
            swaps += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        seen: set[int] = set()
        while len(seen) < 9 or swaps < 300:
            answer = secret(mounted.directory)
            number = int(answer.access_key_id.removeprefix("AKID"))
            assert answer == credentials(number)
            seen.add(number)
    finally:
        enough.set()
        swapper.join()


def test_an_added_field_is_read_before_its_link_exists(top: Path) -> None:
    """creds.5: the kubelet makes the links after the swap."""
    mounted = MountedSecret(top / "s3", keys(1))
    (mounted.directory / "session_token").unlink()
    assert secret(mounted.directory) == credentials(1)


def test_the_link_of_a_removed_field_is_ignored(top: Path) -> None:
    """creds.5: the kubelet drops the links after the swap."""
    mounted = MountedSecret(top / "s3", keys(0))
    (mounted.directory / "session_token").symlink_to("..data/session_token")
    assert secret(mounted.directory) == credentials(0)


def test_a_file_beside_the_kubelets_links_is_refused(top: Path) -> None:
    """creds.2."""
    mounted = MountedSecret(top / "s3", keys(0))
    (mounted.directory / "other").touch()
    assert refusal(lambda: secret(mounted.directory)).endswith("session_token): other")
    (mounted.directory / "other").unlink()
    (mounted.directory / "link").symlink_to("nowhere")
    assert refusal(lambda: secret(mounted.directory)).endswith("session_token): link")


def test_a_subdirectory_in_a_mounted_secret_is_refused(top: Path) -> None:
    """creds.2."""
    mounted = MountedSecret(top / "s3", keys(0))
    (mounted.directory / "..data" / "region").mkdir()
    assert refusal(lambda: secret(mounted.directory)) == "not a regular file: region"


def test_a_dangling_data_link_is_an_error_and_not_an_empty_secret(top: Path) -> None:
    write_private_directory(top / "s3", KEYS)
    (top / "s3" / "..data").symlink_to("..gone")
    assert "..data is dangling" in refusal(lambda: secret(top / "s3"))


@pytest.mark.parametrize("target", ["../elsewhere", "/", "..", "x/y"])
def test_a_data_link_out_of_the_directory_is_an_error(target: str, top: Path) -> None:
    """creds.1, creds.5"""
    write_private_directory(top / "elsewhere", KEYS)
    write_private_directory(top / "s3", KEYS)
    (top / "s3" / "..data").symlink_to(target)
    assert refusal(lambda: secret(top / "s3")) == "..data leads out of the directory"


def test_a_file_named_data_is_an_error(top: Path) -> None:
    write_private_directory(top / "s3", KEYS)
    (top / "s3" / "..data").touch()
    assert refusal(lambda: secret(top / "s3")) == "..data is not a symlink"


# What Vault's logins are read from


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
