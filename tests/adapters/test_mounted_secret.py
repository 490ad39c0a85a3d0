"""creds.5: a Secret as the kubelet mounts and updates it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from publish.domain.credentials import Credentials
from tests.support.kubelet import MountedSecret
from tests.support.private_files import write_private_directory
from tests.support.secret_sources import (
    CANARY,
    KEYS,
    refusal,
    secret,
)

P = ParamSpec("P")
T = TypeVar("T")


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
