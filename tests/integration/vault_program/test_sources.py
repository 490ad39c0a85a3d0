"""One source after the other, with the installed program and a `vault:` source among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_vault import FakeVault, drips, echoes
from tests.support.private_files import write_private_directory
from tests.support.program import Result
from tests.support.s3_roots import Place
from tests.support.servers import S3Server
from tests.support.vault_jobs import resolve


@pytest.fixture
def directory(moto: S3Server, tmp_path: Path) -> str:
    """A `file:` source that answers."""
    fields = {**moto.key._asdict(), "endpoint": moto.endpoint}
    return f"file:{write_private_directory(tmp_path / 's3', fields)}"


def test_an_unavailable_source_is_skipped(place: Place, approle: Path, directory: str) -> None:
    """creds.4, vault.4."""
    creds = f"vault:http://127.0.0.1:9/s3?auth=approle&approle={approle},{directory}"
    assert resolve(place, creds) == Result(0, b"", b"")


def test_an_invalid_source_stops_the_run(place: Place, approle: Path, directory: str) -> None:
    """creds.4, vault.4, cli.9."""
    with FakeVault(login=echoes(403)) as server:
        name = f"vault:{server.address}/s3?auth=approle&approle={approle}"
        stopped = resolve(place, f"{name},{directory}")
    assert stopped.status == 1
    assert stopped.out == b""
    (note,) = stopped.notes
    assert note.startswith(f"credentials: {name}: login: the server responded with status 403: ")
    assert "canary" not in note


def test_if_no_source_is_available_each_is_named_with_its_reason(place: Place, approle: Path) -> None:
    """creds.4."""
    first = f"vault:http://127.0.0.1:9/s3?auth=approle&approle={approle}"
    second = "vault:http://127.0.0.1:9/s3?auth=kubernetes&role=r&token=/nonexistent"
    failed = resolve(place, f"{first},{second},file:/nonexistent")
    assert failed.status == 1
    why = [
        f"{first}: cannot reach the server: Connection refused",
        f"{second}: service-account token file not found: /nonexistent",
        "file:/nonexistent: directory not found",
    ]
    assert failed.notes == [f"credentials: no credentials found: {'; '.join(why)}"]


def test_a_silent_server_leaves_time_for_the_next_source(place: Place, approle: Path, directory: str) -> None:
    """vault.4: half of what was left is the next one's."""
    with FakeVault(login=drips) as server:
        creds = f"vault:{server.address}/s3?auth=approle&approle={approle},{directory}"
        assert resolve(place, creds, "-timeout", "12s") == Result(0, b"", b"")


def test_a_malformed_list_is_refused_before_any_source_is_accessed(place: Place, approle: Path) -> None:
    """creds.6, cli.9."""
    with FakeVault() as server:
        good = f"vault:{server.address}/s3?auth=approle&approle={approle}"
        for bad in (
            f"vault:{server.address.replace('//', '//user:canary@')}/s3?auth=approle&approle={approle}",
            f"{good}&proxy=http://user:canary@proxy.example",
            f"{good}&hvs.canary",
            "valt:x",
        ):
            refused = resolve(place, f"{good},{bad}")
            assert refused.status == 1
            (note,) = refused.notes
            assert note.startswith("credentials: -creds item 2")
            assert "canary" not in note
        assert server.asked == []
