"""Real processes on a directory and on SeaweedFS behind a bad network, killed at random, while a checker reads.

`python -m tests.chaos.run MINUTES [SEED]`. Ends by itself; with 1 if a rule was violated. The seed decides what the
actors draw, not how the machine schedules them.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.chaos.actors import ACTORS
from tests.chaos.arena import Arena
from tests.chaos.checker import check_always, check_at_the_end
from tests.chaos.places import Bucket, Directory, describe_bucket
from tests.support.fault_proxy import Exchange, Fault, passes
from tests.support.s3_roots import make_place, private_directory, wire_to
from tests.support.servers import SeaweedFS
from tests.support.wire_faults import lost_reply, lost_request, reset_in_headers, says, truncated

_FAULTS: list[Fault] = [
    lost_request,
    lost_reply,
    reset_in_headers,
    truncated,
    says(500, "InternalError"),
    says(503, "SlowDown"),
    says(429),
]
_FAULTY = 0.08
_SLOW = 0.05  # of the requests, by up to a second
_QUIET = 300.0  # seconds for all actors to end


def main() -> int:
    """Runs both roots side by side, and reports."""
    minutes = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    print(f"chaos for {minutes:g} minutes, seed {seed}", flush=True)
    server = SeaweedFS()
    try:
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder, wire_to(server) as wire:
            root = Path(folder, "root")
            root.mkdir()
            bucket = make_place(server)
            source = private_directory(Path(folder, "creds"), server, endpoint=wire.endpoint)
            directory = Arena("directory", Directory(str(root)), ("-checkpoint", str(root)), str(root), seed)
            store = Arena(
                "s3",
                Bucket(bucket),
                ("-checkpoint", bucket.url, "-creds", source),
                describe_bucket(bucket),
                seed + 1,
            )
            wire.spoil_all("*", _bad_network(store))
            _play((directory, store), minutes)
            wire.heal()
            for arena in (directory, store):
                check_at_the_end(arena)
            return _report(seed, directory, store)
    finally:
        server.stop()


def _bad_network(arena: Arena) -> Fault:
    def fault(exchange: Exchange) -> None:
        if arena.chance(_SLOW):
            arena.count("slow answers")
            exchange.pause(arena.draw(0, 1))
        if not arena.chance(_FAULTY):
            passes(exchange)
            return
        arena.count("faults")
        _FAULTS[int(arena.draw(0, len(_FAULTS) - 1e-9))](exchange)

    return fault


def _play(arenas: Sequence[Arena], minutes: float) -> None:
    threads = [
        threading.Thread(target=_guarded, args=(work, arena), daemon=True)
        for arena in arenas
        for work in (*ACTORS, check_always)
    ]
    for thread in threads:
        thread.start()
    threading.Event().wait(minutes * 60)
    for arena in arenas:
        arena.over.set()
    for thread in threads:
        thread.join(_QUIET)
        if thread.is_alive():
            arenas[0].violate(f"an actor does not end: {thread.name}")


def _guarded(work: Callable[[Arena], None], arena: Arena) -> None:
    try:
        work(arena)
    except Exception:  # noqa: BLE001  (it must be seen at the end)
        arena.violate(traceback.format_exc())


def _report(seed: int, *arenas: Arena) -> int:
    for arena in arenas:
        print(f"{arena.name}: " + ", ".join(f"{what} {number}" for what, number in sorted(arena.counts.items())))
        for failure, number in arena.failures.most_common():
            print(f"  failed {number} times: {failure}")
    violations = [violation for arena in arenas for violation in arena.violations]
    for violation in violations:
        print(f"VIOLATION {violation}")
    print(f"violations: {len(violations)}, seed {seed}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
