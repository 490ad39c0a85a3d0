"""creds.1, creds.2: who may own, read and change a secret in a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.ownership import give_to
from tests.support.private_files import write_private_directory
from tests.support.secret_sources import (
    CREDENTIALS,
    Read,
    private,
    refusal,
    secret,
)


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
    """creds.1"""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    give_to(monkeypatch, directory, 0)
    for file in directory.iterdir():
        give_to(monkeypatch, file, 1000)
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
    """creds.1"""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    for path in (directory, *directory.iterdir()):
        give_to(monkeypatch, path, owner)
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
