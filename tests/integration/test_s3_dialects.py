"""Every character that a prefix, an attempt and a save may have, on stores that write listings in different ways."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from publish.domain.candidate import names_in
from publish.domain.root import S3Root
from tests.support.dialect_proxy import DIALECTS, STUCK, Dialect, dialect_proxy
from tests.support.fault_proxy import FaultProxy
from tests.support.program import call, start
from tests.support.s3_jobs import S3Job
from tests.support.s3_roots import Place, make_place, private_directory, wire_to
from tests.support.servers import KeyedServer, S3Server
from tests.support.variants import variants

NAMES = [
    "a+b",
    "a%b",
    "a%2Bb",
    "a%20b",
    "a b",
    "a&b",
    "a=b",
    "größe",
    "日本",
    "~(a)",
    "2026-12-02T11:00:00+00:00",
    "a'b\"<c>",
    "!$*,;@[]^`{|}",
]
ALL_AT_ONCE = "é+ %2B%20&=~()日"
SOME = ["a+b", "a%2Bb", "a b", ALL_AT_ONCE]


def job_at(server: S3Server, wire: FaultProxy, name: str, folder: Path) -> S3Job:
    """A job whose prefix and attempt contain `name`."""
    fresh = make_place(server)
    place = Place(server, S3Root(fresh.root.bucket, f"{fresh.root.prefix}/{name}/run{name}"))
    source = private_directory(folder / "creds", server, endpoint=wire.endpoint)
    return S3Job(place, wire, ("-checkpoint", place.url, "-creds", source))


@contextmanager
def job_in(server: S3Server, dialect: Dialect, name: str, folder: Path) -> Iterator[S3Job]:
    with dialect_proxy(server, dialect) as wire:
        yield job_at(server, wire, name, folder)


def do(job: S3Job, verb: str, *words: str) -> bytes:
    result = call(verb, *job.flags, *words)
    assert (result.status, result.err) == (0, b""), (verb, words, result)
    return result.out


def watch(job: S3Job, attempt: str) -> bytes:
    words = ("-framework", "hf", "-epoch", "3", "-attempt", attempt, "-interval", "1h")
    with start("watch", *job.flags, *words) as process:
        assert process.stdout is not None
        published = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert process.returncode == 0, err
    return published + out


def run(job: S3Job, attempt: str) -> bytes:
    """With a COMMAND that prints what it was told. Returns the line that says what was published."""
    words = ("-framework", "hf", "-epoch", "3", "-attempt", attempt, "-interval", "1h", "--", "sh", "-c")
    with start("run", *job.flags, *words, 'printf %s "$DISPATCH_SAVES"') as process:
        out, err = process.communicate()
    assert (process.returncode, out.decode()) == (0, f"{job.place.url}/exec/{attempt}"), err
    return b"".join(line for line in err.splitlines(keepends=True) if line.startswith(b"publish: published "))


def every_verb(job: S3Job, name: str, *, full: bool) -> None:
    """A run from its start to a prune, each verb on an empty or a full log; a watch on the one, a run on the other."""
    url = job.place.url
    if full:
        job.place.fill("exec/old/checkpoint-1/trainer_state.json", body=b'{"global_step": 1}')
        do(job, "publish", "-epoch", "1", f"{url}/exec/old/checkpoint-1", "1")
    else:
        assert do(job, "resolve") == do(job, "log") == b""
    do(job, "probe")
    began = json.loads(do(job, "begin", "-attempt", name, "-epoch", "3", "-json"))
    assert began["saves"] == f"{url}/exec/{name}"
    marked = f"exec/{name}/checkpoint-2"
    job.place.fill(f"{marked}/{name} weights/{name}")
    job.place.fill(f"{marked}/trainer_state.json", body=b'{"global_step": 2}')
    publish_by = run if full else watch
    assert publish_by(job, name).endswith(f"{url}/{marked})\n".encode())
    named = f"exec/{name}/{name}"
    job.place.fill(f"{named}/x", f"{named}/{name}", f"{named}+/{name}", f"{named}-")
    assert named.encode() in do(job, "publish", "-epoch", "3", f"{url}/{named}", "3")
    assert do(job, "resolve") == f"{url}/{named}\n".encode()
    log = [json.loads(line) for line in do(job, "log", "-json").splitlines()]
    assert [one["save"] for one in log] == [
        *[f"{url}/exec/old/checkpoint-1"] * full,
        f"{url}/{marked}",
        f"{url}/{named}",
    ]
    verdicts = do(job, "verify", "-all")
    assert verdicts.count(b"whole ") == len(verdicts.splitlines()) == 2 + full
    assert verdicts.endswith(f"whole {url}/{named}\n".encode())
    assert do(job, "resolve", "-verify") == f"{url}/{named}\n".encode()
    dry = call("prune", *job.flags, "-keep", "1", "-dry-run")
    assert (dry.status, len(dry.err.splitlines())) == (0, 1)
    removed = do(job, "prune", "-keep", "1")
    assert removed.endswith(f"removed {url}/{marked}\n".encode())
    assert dry.out == removed.replace(b"removed ", b"would remove ")
    do(job, "publish", "-epoch", "3", f"{url}/{named}+", "4")
    assert do(job, "prune", "-keep", "1", "-verify") == f"removed {url}/{named}\n".encode()
    do(job, "publish", "-epoch", "3", f"{url}/{named}-", "5")
    assert do(job, "retract", "-delete", f"{url}/{named}-").endswith(f"removed {url}/{named}-\n".encode())
    assert do(job, "resolve") == f"{url}/{named}+\n".encode()
    assert [path for path in job.place.paths() if not path.startswith((".publish/", "pub/"))] == [f"{named}+/{name}"]
    assert not [path for path in job.place.paths() if path.startswith(".publish/prune/")]


@pytest.mark.parametrize(
    "dialect", ["aws", "blank as %20 and as plus", "no encoding", "prefix absent", "everything twice"]
)
def test_dialects_are_understood(dialect: str, moto: S3Server, tmp_path: Path) -> None:
    """s3.1, s3.5, s3.17: the most different ones; `make test-all` tries all of them with every name"""
    with job_in(moto, DIALECTS[dialect], ALL_AT_ONCE, tmp_path) as job:
        every_verb(job, ALL_AT_ONCE, full=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
@pytest.mark.parametrize("name", NAMES)
def test_every_name_works_in_every_dialect(
    name: str,
    dialect: Dialect,
    full: bool,  # noqa: FBT001  (a parameter of the matrix)
    moto: S3Server,
    tmp_path: Path,
) -> None:
    """s3.1, s3.5, s3.17"""
    with job_in(moto, dialect, name, tmp_path) as job:
        every_verb(job, name, full=full)


@pytest.mark.parametrize("full", variants({"empty": False, "full": True}, exhaustive={"empty"}))
@pytest.mark.parametrize(
    "name", [*SOME[-1:], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES if name not in SOME[-1:])]
)
def test_every_name_works_on_a_real_store(name: str, full: bool, seaweedfs: KeyedServer, tmp_path: Path) -> None:  # noqa: FBT001  (a parameter of the matrix)
    """s3.1: SeaweedFS encodes keys and echoes the prefix raw."""
    with wire_to(seaweedfs) as wire:
        every_verb(job_at(seaweedfs, wire, name, tmp_path), name, full=full)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
def test_names_that_look_encoded_are_told_apart_under_a_plain_prefix(dialect: Dialect, moto: S3Server) -> None:
    """s3.1: neither the prefix nor other keys show how the store writes them."""
    with dialect_proxy(moto, dialect) as wire:
        for name in ("a+b", "a b", "a%2Bb", "a%20b", "a%252Bb"):
            place = make_place(moto)
            place.fill(f"s/{name}/x")
            store = place.store(wire.endpoint)
            assert list(names_in(store.list_directories, b"s")) == [name.encode()]
            assert store.remove_tree(f"s/{name}".encode(), ()).found
            assert place.paths() == []


@pytest.mark.parametrize("verb", ["resolve", "probe", "prune"])
def test_a_token_that_never_moves_ends_the_verb_at_once(verb: str, moto: S3Server, tmp_path: Path) -> None:
    """s3.2, s3.6"""
    with job_in(moto, STUCK, "a", tmp_path) as job:
        job.record(1)
        result = job.run(verb)
        assert (result.status, result.out) == (1, b"")
        assert "the same continuation token twice in a row" in result.notes[0]
        assert len(job.wire.sent("GET", "list-type=2")) == 2
