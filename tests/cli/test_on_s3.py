"""The installed program on S3 roots: its words, its statuses, its time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.private_files import write_private, write_private_directory
from tests.support.program import Result, run
from tests.support.s3_cli import EXPIRED, Job, make_job, noted, said
from tests.support.s3_roots import make_place, private_directory, wire_to
from tests.support.servers import S3Server, free_ports
from tests.support.variants import SERVERS
from tests.support.wire_faults import answers, says, silence


@pytest.fixture
def job(moto: S3Server, tmp_path: Path) -> Iterator[Job]:
    with wire_to(moto) as wire:
        yield make_job(moto, tmp_path, wire)


@pytest.mark.parametrize("s3_server", SERVERS, indirect=True)
def test_each_verb_does_its_work(s3_server: S3Server, tmp_path: Path) -> None:
    """resolve.1, publish.4, watch.1, watch.6, prune.1, probe.4"""
    with wire_to(s3_server) as wire:
        job = make_job(s3_server, tmp_path, wire)
        url, creds = job.place.url, f"file:{tmp_path}/creds"
        assert job.run("probe") == Result(0, f"probed {url} with the credentials of {creds}\n".encode(), b"")
        assert job.run("resolve") == Result(0, b"", b"")
        save = job.save(1)
        published = job.run("publish", "-epoch", "3", save + "/", "1")
        assert published.status == 0
        assert f"(epoch 3, step 1, {save})\n".encode() in published.out
        again = job.run("publish", "-epoch", "3", save, "1")
        assert (again.status, again.out) == (0, b"")
        assert again.notes[0].startswith("already published: ")
        latest = job.save(2)
        with job.watch("-interval", "50ms") as process:
            assert f"(epoch 3, step 2, {latest})\n".encode() in said(process)
            process.terminate()
            assert process.wait(60) == 0
        answer = job.run("resolve", "-probe")
        assert answer == Result(
            0, f"{latest}\n".encode(), f"publish: probed {url} with the credentials of {creds}\n".encode()
        )
        assert job.run("prune", "-keep", "1") == Result(0, f"removed {save}\n".encode(), b"")
        assert not any("checkpoint-1" in path or path.startswith("prune") for path in job.place.paths())


@pytest.mark.parametrize(
    ("creds", "why"),
    [
        ("nonsense", "-creds item 1 has no colon"),
        ("file:/x,", "-creds item 2 is empty"),
        ("gopher:/x", "unknown kind"),
        ("secret:/does/not/exist", "no credentials found: secret:/does/not/exist: "),
        ("secret:/does/not/exist,file:nor/this", "file:nor/this: "),
        ("secret:/dev/null", "secret:/dev/null: "),
    ],
)
def test_credential_errors_start_with_credentials(creds: str, why: str) -> None:
    """creds.4, creds.6, probe.1"""
    for verb in ("resolve", "prune", "probe"):
        result = run(verb, "-checkpoint", "s3://bucket/run", "-creds", creds)
        assert (result.status, result.out) == (1, b"")
        (note,) = result.notes
        assert note.startswith("credentials: ")
        assert why in note


@pytest.mark.parametrize(
    ("creds", "why"), [("bogus", "-creds item 1 has no colon"), ("file:/x", "out of time (-timeout 1e-09s)")]
)
@pytest.mark.parametrize("verb", ["resolve", "watch"])
def test_a_wrong_creds_list_is_reported_even_without_time(verb: str, creds: str, why: str) -> None:
    """creds.6: and before a source is asked nothing is about the store"""
    words = ("-framework", "hf", "-epoch", "3", "-attempt", "a") if verb == "watch" else ()
    result = run(verb, "-checkpoint", "s3://bucket/run", "-creds", creds, "-timeout", "1ns", *words)
    assert (result.status, result.out) == (1, b"")
    (note,) = result.notes
    assert note.startswith("credentials: ")
    assert why in note or (creds != "bogus" and note.endswith("no time left to read it"))


TOKEN = "TOKENCANARY/ab+cd=="


@pytest.mark.parametrize("spelled", [TOKEN, "TOKENCANARY%2Fab%2bcd=%3D", "TOKENCANARY\\/ab\\u002bcd=="])
def test_a_secret_echoed_by_the_store_is_not_shown(job: Job, spelled: str) -> None:
    """cli.9: as the name of an object, and in its words"""
    write_private(job.folder / "creds" / "session_token", TOKEN)
    page = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>{}</Key></Contents></ListBucketResult>"
    job.wire.spoil("GET", answers(page.format(f"{job.place.root.prefix}/pub/{spelled}")))
    job.wire.spoil("GET", says(403, "AccessDenied", message=f"not with {spelled}"))
    for _ in range(2):
        result = job.run("resolve")
        assert (result.status, result.out) == (1, b"")
        assert b"CANARY" not in result.err
        assert "…" in result.notes[0]


def test_a_secret_from_before_a_refresh_is_not_shown(job: Job) -> None:
    """cli.9, s3.12"""
    job.save(1)
    write_private(job.folder / "creds" / "session_token", TOKEN)
    with job.watch("-interval", "1h") as process:
        assert b"step 1, " in said(process)
        write_private(job.folder / "creds" / "session_token", "another")
        job.wire.spoil("GET", EXPIRED, says(403, "AccessDenied", message=f"it was {TOKEN}"))
        process.terminate()
        assert process.wait(60) == 1
        notes = noted(process)
    assert "CANARY" not in "".join(notes)
    assert "it was …" in notes[-1]


def test_a_relative_source_is_below_the_working_directory(job: Job) -> None:
    """creds.7"""
    line = ("resolve", "-checkpoint", job.place.url, "-creds", "file:creds")
    assert run(*line, cwd=job.folder) == Result(0, b"", b"")
    assert "no credentials found" in run(*line, cwd="/").notes[0]


@pytest.mark.parametrize("s3_server", SERVERS, indirect=True)
def test_probe_names_the_first_source_that_answers(s3_server: S3Server, tmp_path: Path) -> None:
    """creds.4, probe.4"""
    source = private_directory(tmp_path / "creds", s3_server)
    url = make_place(s3_server).url
    result = run("probe", "-checkpoint", url, "-creds", f"secret:/does/not/exist,{source}")
    assert result == Result(0, f"probed {url} with the credentials of {source}\n".encode(), b"")


def test_store_errors_start_with_store(job: Job) -> None:
    """s3.13, cli.9"""
    job.wire.spoil_all("GET", says(403, "AccessDenied"))
    (note,) = job.run("resolve").notes
    assert note.startswith("store: ")
    assert "AccessDenied" in note
    (note,) = job.run("probe").notes
    assert note.startswith("store: probe: ")


def test_a_foreign_name_in_the_log_is_not_a_store_error(job: Job) -> None:
    """layout.4, resolve.3"""
    job.place.fill("pub/foreign")
    result = job.run("resolve")
    assert (result.status, result.out) == (1, b"")
    assert "foreign" in result.notes[0]


def test_a_save_that_is_missing_or_outside_the_root_fails(job: Job) -> None:
    """publish.1, publish.2"""
    for save in (f"{job.place.url}/exec/none", job.place.url, "s3://other/run/x", "/data/x", job.place.url + "-2/x"):
        result = job.run("publish", "-epoch", "1", save, "5")
        assert (result.status, result.out) == (1, b"")
        assert len(result.notes) == 1


def test_a_probe_ends_at_its_timeout(job: Job) -> None:
    """s3.11: with the step and the limit"""
    job.wire.spoil_all("PUT", silence)
    result = job.run("probe", "-timeout", "3s")
    assert (result.status, result.out) == (1, b"")
    assert result.notes == ["store: probe: write: out of time (-timeout 3s)"]


def test_resolve_only_lists_the_log(job: Job) -> None:
    """resolve.2"""
    job.run("resolve")
    (asked,) = job.wire.asked
    assert asked.method == "GET"
    assert asked.query["prefix"] == f"{job.place.root.prefix}/pub/"


def test_a_retry_of_less_than_a_second_is_not_said_to_take_none(tmp_path: Path) -> None:
    """s3.8: a store that accepts no connection is tried for a tenth of -timeout."""
    (port,) = free_ports(1)
    fields = {"access_key_id": "k", "secret_access_key": "s", "endpoint": f"http://127.0.0.1:{port}"}
    creds = f"file:{write_private_directory(tmp_path / 'creds', fields)}"
    result = run("resolve", "-checkpoint", "s3://bucket/run", "-creds", creds, "-timeout", "3s")
    assert result.status == 1
    assert result.retries[0].startswith("store: list pub/ failed, retrying for up to 1s: ")


def test_an_unencrypted_connection_off_loopback_is_noted_once(tmp_path: Path) -> None:
    """s3.16"""
    fields = {"access_key_id": "k", "secret_access_key": "s", "endpoint": "http://store.invalid"}
    creds = f"file:{write_private_directory(tmp_path / 'creds', fields)}"
    result = run("resolve", "-checkpoint", "s3://bucket/run", "-creds", creds, "-timeout", "2s")
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("the connection to http://store.invalid is not encrypted: ")
    assert sum("not encrypted" in note for note in result.notes) == 1


def test_an_unencrypted_vault_off_loopback_is_noted_before_it_is_asked(tmp_path: Path) -> None:
    """s3.16: what is sent to log in can be read, whatever comes of it."""
    approle = write_private_directory(tmp_path / "approle", {"role_id": "r", "secret_id": "s"})
    creds = f"vault:http://vault.invalid/x?auth=approle&approle={approle}"
    result = run("resolve", "-checkpoint", "s3://bucket/run", "-creds", creds, "-timeout", "5s")
    assert (result.status, result.out) == (1, b"")
    first, second = result.notes
    assert first.startswith("the connection to http://vault.invalid is not encrypted: ")
    assert "read the credentials" in first
    assert second.startswith("credentials: no credentials found: ")
