"""A watch on an S3 root: outages, credentials that are replaced, and the end."""

from __future__ import annotations

import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import pytest

from tests.support.private_files import write_private
from tests.support.program import run, start
from tests.support.s3_cli import EXPIRED, Job, make_job, noted, said
from tests.support.s3_roots import Place, make_place, private_directory, wire_to
from tests.support.servers import KeyedServer, S3Server, free_ports
from tests.support.wire_faults import says, silence


@pytest.fixture
def job(moto: S3Server, tmp_path: Path) -> Iterator[Job]:
    with wire_to(moto) as wire:
        yield make_job(moto, tmp_path, wire)


class Door:
    """An address that refuses connections until it is opened, and then forwards them to the server behind it."""

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
    with job.watch("-interval", "10ms", "-timeout", "3s") as process:
        step = 0
        while monotonic() - began < 3.5:
            step += 1
            job.save(step)
            assert f"step {step}, ".encode() in said(process)
        job.wire.spoil_all("GET", silence)
        assert process.wait(60) == 1
        # The request's own limit is the same, and may be the first to be over.
        request = r": LIST s3://\S+/exec/a/: no complete response from http://127\.0\.0\.1:[0-9]+: timed out"
        (note,) = noted(process)
        assert re.fullmatch(rf"store: list exec/a/: out of time \(-timeout 3s\)({request})?", note)


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


def test_a_folder_of_many_digits_is_skipped_whatever_the_interpreter_settings(job: Job) -> None:
    """env.2"""
    job.place.fill(f"exec/a/checkpoint-{'1' * 700}/trainer_state.json")
    job.save(1)
    with job.watch(PYTHONINTMAXSTRDIGITS="640") as process:
        assert b"step 1, " in said(process)
        process.terminate()
        assert process.wait(60) == 0
