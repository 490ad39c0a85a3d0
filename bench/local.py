"""Start-up, parsing and a big log on a directory, each beside what it is measured against.

Ratios count: absolute times are the machine's. `local.py [publish.pyz]`.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from base64 import b32decode
from collections.abc import Callable, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from threading import Timer

from publish.domain.entry import Entry

PYTHON = sys.executable
PUBLISH = str(Path(PYTHON).with_name("publish"))
SOURCES = Path(__file__).parents[1] / "src"
MANY = 100_000
# What a job script's shell has; above all no PYTHON* that would change the interpreter's start.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"}


def main() -> None:
    # As an installer leaves them: compiling is not part of a start.
    compileall.compile_dir(SOURCES, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        start_up(Path(folder, "small"), sys.argv[1:])
        parsing()
        big_log(Path(folder, "big"))


def start_up(root: Path, singles: Sequence[str]) -> None:
    """Whole processes, from exec to exit; a watch from exec until it watches, and to its first publication."""
    (root / "pub").mkdir(parents=True)
    (root / "pub" / name(1)).touch()
    (root / "exec" / "run-1" / "checkpoint-1").mkdir(parents=True)
    resolve = ["resolve", "-checkpoint", str(root)]
    heading("start-up on a directory against `python -c pass`")
    compare(
        {
            "python -c pass": [PYTHON, "-c", "pass"],
            "publish resolve": [PUBLISH, *resolve],
            "publish prune": [PUBLISH, "prune", "-checkpoint", str(root)],
            **{f"python {Path(single).name} resolve": [PYTHON, single, *resolve] for single in singles},
        },
        times=40,
    )
    pass_alone = min(seconds_to_exit([PYTHON, "-c", "pass"]) for _ in range(40))
    epochs = count(2)
    for what, stream in (("publish watch, until it watches", "stderr"), ("and its first publication", "stdout")):
        lines = (seconds_to_first_line(watch(root, epoch), stream) for epoch in islice(epochs, 40))
        show(what, min(lines), pass_alone)


def watch(root: Path, epoch: int) -> list[str]:
    """The command of an execution of its own, with one save to publish."""
    attempt = f"run-{epoch}"
    save = root / "exec" / attempt / f"checkpoint-{epoch}"
    save.mkdir(parents=True)
    (save / "trainer_state.json").write_text(json.dumps({"global_step": epoch}))
    where = ["-checkpoint", str(root), "-framework", "hf", "-attempt", attempt]
    return [PUBLISH, "watch", *where, "-epoch", str(epoch)]


def parsing() -> None:
    """Names to entries, in one process."""
    names = [name(step).encode() for step in range(MANY)]
    heading(f"parsing {MANY:,} names against their base32 alone, by the standard library")
    base = seconds_to(lambda: [b32decode(one[42:] + b"=" * (-len(one[42:]) % 8)) for one in names])
    show("b32decode", base, base)
    show("Entry.parse", seconds_to(lambda: [Entry.parse(one) for one in names]), base)


def big_log(root: Path) -> None:
    """A log that was never pruned."""
    (root / "pub").mkdir(parents=True)
    for step in range(MANY):
        os.close(os.open(root / "pub" / name(step), os.O_CREAT | os.O_WRONLY))
    heading(f"{MANY:,} entries in a directory: `publish resolve` against the sorted list of their names")
    compare(
        {
            "ls": ["ls", str(root / "pub")],
            "find -name '*'": ["find", str(root / "pub"), "-name", "*"],
            "publish resolve": [PUBLISH, "resolve", "-checkpoint", str(root)],
        },
        times=10,
    )


def name(step: int) -> str:
    return Entry.of(1, step, b"exec/run-1/checkpoint-%d" % step).name.decode()


def compare(commands: Mapping[str, Sequence[str]], times: int) -> None:
    """The fastest run of each, in turns: a disturbance only makes a run slower, and then falls on all of them."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(times):
        for what, command in commands.items():
            best[what] = min(best[what], seconds_to_exit(command))
    base = next(iter(best.values()))
    for what, seconds in best.items():
        show(what, seconds, base)


def seconds_to_exit(command: Sequence[str]) -> float:
    """From exec to exit."""
    begun = time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def seconds_to_first_line(command: Sequence[str], stream: str) -> float:
    """From exec to the first line on "stdout" or "stderr"; then the process is killed."""
    out, err = (subprocess.PIPE if stream == name else subprocess.DEVNULL for name in ("stdout", "stderr"))
    begun = time.perf_counter()
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=out, stderr=err) as process:
        pipe = process.stdout or process.stderr
        assert pipe is not None
        patience = Timer(60, process.kill)
        patience.start()
        line = pipe.readline()
        seconds = time.perf_counter() - begun
        patience.cancel()
        process.kill()
    if not line:
        raise RuntimeError(f"nothing on {stream} within a minute: {' '.join(command)}")
    return seconds


def seconds_to(work: Callable[[], object], times: int = 5) -> float:
    """The fastest of several runs in this process."""
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best


def heading(text: str) -> None:
    print(f"\n{text}", flush=True)


def show(what: str, seconds: float, base: float) -> None:
    print(f"  {what:32} {seconds * 1000:9.1f} ms  {seconds / base:6.2f} x", flush=True)


if __name__ == "__main__":
    main()
