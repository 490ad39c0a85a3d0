"""The installed program on S3 roots: its words, its statuses, its time."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.support.fault_proxy import Fault, Wire, answers, drips, says, silence
from tests.support.private_files import write_private, write_private_directory
from tests.support.program import Result, Word, run, start, without_narration
from tests.support.s3_roots import Place, make_place, private_directory, wire_to
from tests.support.servers import KeyedServer, S3Server, free_ports

EXPIRED = says(403, "ExpiredToken")


class Job(NamedTuple):
    """A root on a server, a wire before it, and the flags to reach it through the wire."""

    place: Place
    wire: Wire
    folder: Path
    flags: tuple[str, ...]

    def run(self, verb: str, *words: Word) -> Result:
        return run(verb, *self.flags, *words)

    def save(self, step: int) -> str:
        self.place.fill(f"exec/a/checkpoint-{step}/trainer_state.json", body=b'{"global_step": %d}' % step)
        return f"{self.place.url}/exec/a/checkpoint-{step}"

    def watch(self, *words: Word, **env: str) -> subprocess.Popen[bytes]:
        line = ("-framework", "hf", "-epoch", "3", "-attempt", "a", *words)
        return start("watch", *self.flags, *line, env=env)


def make_job(server: S3Server, folder: Path, wire: Wire) -> Job:
    place = make_place(server)
    source = private_directory(folder / "creds", server, endpoint=wire.endpoint)
    return Job(place, wire, folder, ("-checkpoint", place.url, "-creds", source))


@pytest.fixture
def job(moto: S3Server, tmp_path: Path) -> Iterator[Job]:
    with wire_to(moto) as wire:
        yield make_job(moto, tmp_path, wire)


def said(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def noted(process: subprocess.Popen[bytes]) -> list[str]:
    assert process.stderr is not None
    lines = without_narration(process.stderr.read()).decode().splitlines()
    return [line.removeprefix("publish: ") for line in lines]


def test_each_verb_does_its_work(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """resolve.1, publish.4, watch.1, watch.6, prune.1, probe.4"""
    with wire_to(seaweedfs) as wire:
        job = make_job(seaweedfs, tmp_path, wire)
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


def test_probe_names_the_first_source_that_answers(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """creds.4, probe.4"""
    source = private_directory(tmp_path / "creds", seaweedfs)
    url = make_place(seaweedfs).url
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


@pytest.mark.parametrize(
    ("verb", "step", "fault"),
    [("resolve", "list pub/", silence), ("resolve", "list pub/", drips), ("probe", "probe: write", silence)],
)
def test_a_verb_ends_at_its_timeout(job: Job, verb: str, step: str, fault: Fault) -> None:
    """s3.11: with the step and the limit"""
    for method in ("GET", "PUT"):
        job.wire.spoil_all(method, fault)
    result = job.run(verb, "-timeout", "4s")
    assert (result.status, result.out) == (1, b"")
    assert result.notes == [f"store: {step}: out of time (-timeout 4s)"]


class Door:
    """An address that nobody answers at until it is opened; then what comes goes to the server behind."""

    def __init__(self, server: S3Server) -> None:
        self._behind = urlsplit(server.endpoint)
        (self.port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._sockets: list[socket.socket] = []

    def open(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        self._sockets.append(listener)
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def close(self) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((self._behind.hostname, self._behind.port))
                self._sockets += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while part := one.recv(1 << 16):
                other.sendall(part)


@pytest.fixture
def door(moto: S3Server) -> Iterator[Door]:
    door = Door(moto)
    yield door
    door.close()


def behind_door(door: Door, server: S3Server, folder: Path) -> tuple[Place, tuple[str, ...]]:
    place = make_place(server)
    source = private_directory(folder / "creds", server, endpoint=door.endpoint)
    return place, ("-checkpoint", place.url, "-creds", source)


def test_an_unreachable_store_is_retried_for_a_tenth_of_the_timeout(door: Door, moto: S3Server, tmp_path: Path) -> None:
    """s3.8"""
    _, flags = behind_door(door, moto, tmp_path)
    began = monotonic()
    result = run("resolve", *flags, "-timeout", "20s")
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("store: ")
    assert "out of time" not in result.notes[0]
    assert monotonic() - began > 2


def test_a_watch_survives_a_longer_outage_of_the_store(door: Door, moto: S3Server, tmp_path: Path) -> None:
    """s3.8"""
    place, flags = behind_door(door, moto, tmp_path)
    place.fill("exec/a/checkpoint-1/trainer_state.json", body=b'{"global_step": 1}')
    line = ("-framework", "hf", "-epoch", "3", "-attempt", "a", "-timeout", "20s")
    with start("watch", *flags, *line) as process:
        # A tenth is over when another verb, begun later, has given up.
        assert run("resolve", *flags, "-timeout", "20s").status == 1
        door.open()
        assert b"step 1, " in said(process)
        process.terminate()
        assert process.wait(60) == 0


def test_a_watch_refreshes_its_credentials_and_logs_it(job: Job) -> None:
    """s3.12"""
    save = job.save(1)
    job.wire.spoil("PUT", EXPIRED)
    with job.watch("-interval", "1h") as process:
        assert f"step 1, {save})".encode() in said(process)
        job.save(2)
        job.wire.spoil("GET", says(403, "InvalidAccessKeyId"))
        process.send_signal(signal.SIGINT)
        assert b"step 2, " in said(process)
        assert process.wait(60) == 0
        source = f"the credentials of file:{job.folder}/creds are unchanged"
        assert noted(process) == [
            "the store rejected the credentials (ExpiredToken); resolving the sources again",
            source,
            "the store rejected the credentials (InvalidAccessKeyId); resolving the sources again",
            source,
        ]


def test_a_key_rotated_on_disk_and_at_the_store_is_picked_up(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """s3.12: InvalidAccessKeyId for real"""
    place = make_place(seaweedfs)
    old, new = seaweedfs.add_key(), seaweedfs.add_key()
    source = private_directory(tmp_path / "creds", seaweedfs, key=old)
    with wire_to(seaweedfs) as wire:
        job = Job(place, wire, tmp_path, ("-checkpoint", place.url, "-creds", source))
        job.save(1)
        with job.watch("-interval", "1h") as process:
            assert b"step 1, " in said(process)
            for name, value in new._asdict().items():
                write_private(tmp_path / "creds" / name, value)
            seaweedfs.remove_key(old)
            job.save(2)
            process.terminate()
            assert b"step 2, " in said(process)
            assert process.wait(60) == 0
            assert noted(process)[0].startswith("the store rejected the credentials (InvalidAccessKeyId)")


def test_a_watch_fails_if_refreshed_credentials_are_rejected_too(job: Job) -> None:
    """s3.12"""
    job.save(1)
    job.wire.spoil("PUT", EXPIRED, EXPIRED)
    with job.watch() as process:
        assert process.wait(60) == 1
        notes = noted(process)
        assert len(notes) == 3
        assert notes[2].startswith("store: ")
        assert "ExpiredToken" in notes[2]


def test_a_watch_fails_if_no_source_answers_any_more(job: Job) -> None:
    """s3.12"""
    job.save(1)
    with job.watch("-interval", "1h") as process:
        assert b"step 1, " in said(process)
        (job.folder / "creds").rename(job.folder / "gone")
        job.wire.spoil_all("GET", EXPIRED)
        process.terminate()
        assert process.wait(60) == 1
        assert noted(process)[1].startswith("credentials: no credentials found: ")


@pytest.mark.parametrize(("field", "value"), [("endpoint", "http://127.0.0.1:9"), ("region", "eu-west-1")])
def test_a_watch_does_not_move_to_another_store(job: Job, field: str, value: str) -> None:
    """s3.12"""
    job.save(1)
    with job.watch("-interval", "1h") as process:
        assert b"step 1, " in said(process)
        write_private(job.folder / "creds" / field, value)
        job.wire.spoil("GET", EXPIRED)
        process.terminate()
        assert process.wait(60) == 1
        assert noted(process)[1].startswith(f"credentials: file:{job.folder}/creds: its {field} differs")


def test_other_verbs_fail_on_the_first_rejection(job: Job) -> None:
    """s3.12"""
    job.wire.spoil("GET", EXPIRED)
    result = job.run("resolve")
    assert (result.status, result.out) == (1, b"")
    assert "ExpiredToken" in result.notes[0]
    assert len(job.wire.asked) == 1


def test_each_scan_has_its_own_timeout_and_exceeding_it_ends_the_watch(job: Job) -> None:
    """s3.11, cli.3"""
    began = monotonic()
    with job.watch("-interval", "10ms", "-timeout", "5s") as process:
        step = 0
        while monotonic() - began < 7:
            step += 1
            job.save(step)
            assert f"step {step}, ".encode() in said(process)
        job.wire.spoil_all("GET", silence)
        assert process.wait(60) == 1
        # The request's own limit is the same, and may be the first to be over.
        request = r": LIST s3://\S+/exec/a/: no complete response from http://127\.0\.0\.1:[0-9]+: timed out"
        (note,) = noted(process)
        assert re.fullmatch(rf"store: list exec/a/: out of time \(-timeout 5s\)({request})?", note)


def test_a_second_signal_ends_a_watch_waiting_for_the_store(job: Job) -> None:
    """watch.6"""
    job.save(1)
    with job.watch("-interval", "1h") as process:
        assert b"step 1, " in said(process)
        before = len(job.wire.asked)
        job.wire.spoil_all("GET", silence)
        process.terminate()
        while len(job.wire.asked) == before:
            continue
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM


def test_resolve_only_lists_the_log(job: Job) -> None:
    """resolve.2"""
    job.run("resolve")
    (asked,) = job.wire.asked
    assert asked.method == "GET"
    assert asked.query["prefix"] == f"{job.place.root.prefix}/pub/"


def test_a_folder_of_many_digits_is_skipped_whatever_the_interpreter_settings(job: Job) -> None:
    """env.2"""
    job.place.fill(f"exec/a/checkpoint-{'1' * 700}/trainer_state.json")
    job.save(1)
    with job.watch(PYTHONINTMAXSTRDIGITS="640") as process:
        assert b"step 1, " in said(process)
        process.terminate()
        assert process.wait(60) == 0


def test_an_unencrypted_connection_off_loopback_is_noted_once(tmp_path: Path) -> None:
    """s3.16"""
    fields = {"access_key_id": "k", "secret_access_key": "s", "endpoint": "http://store.invalid"}
    creds = f"file:{write_private_directory(tmp_path / 'creds', fields)}"
    result = run("resolve", "-checkpoint", "s3://bucket/run", "-creds", creds, "-timeout", "2s")
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("the connection to http://store.invalid is not encrypted: ")
    assert sum("not encrypted" in note for note in result.notes) == 1
