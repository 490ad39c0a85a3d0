"""A Slurm of two nodes on one machine: Debian's slurmctld, slurmd and munged, on loopback, in a folder of its own.

Needs root, as slurmd does. The machine's own Slurm and munge, if it has any, are not touched.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.servers import free_ports

# Seconds for what should take a few: a job that starts, a daemon that answers.
PATIENCE = 120

NODES = ("one", "two")

CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=30
NodeName=one NodeAddr=127.0.0.1 NodeHostname={hostname} Port={one_port} CPUs=2 State=UNKNOWN
NodeName=two NodeAddr=127.0.0.1 NodeHostname={hostname} Port={two_port} CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """A running cluster. Jobs run in `environment` and what they are submitted with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF": str(folder / "slurm.conf")}

    def ask(self, *command: str) -> str:
        """Runs one of Slurm's commands and returns its stdout."""
        ended = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, f"{command}: {ended.stderr}"
        return ended.stdout

    def submit(self, *arguments: str | Path, **variables: str) -> str:
        """`sbatch` with these variables in the job's environment; returns the job's id."""
        command = ["sbatch", "--parsable", *map(str, arguments)]
        ended = subprocess.run(
            command,
            env=self.environment | variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def job(self, number: str) -> dict[str, str]:
        """What `scontrol show job` says, by its own words."""
        fields = self.ask("scontrol", "--oneliner", "show", "job", number).split()
        return dict(field.split("=", 1) for field in fields if "=" in field)

    def wait(self, number: str, what: str, until: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """The job's fields as soon as they are as wanted."""
        deadline = time.monotonic() + PATIENCE
        while not until(job := self.job(number)):
            assert time.monotonic() < deadline, f"waited for {what}: {job}"
            time.sleep(0.2)
        return job

    def start_again_now(self, number: str) -> None:
        """Spares a requeued job the two minutes that Slurm keeps it waiting.

        Credentials bear whole seconds, and slurmd takes one of the second in which it revoked the
        last one for revoked, too: the job would fail before it has started.
        """
        self.wait(number, "the job to be back in the queue", lambda job: job["JobState"] == "PENDING")
        revoked = int(time.time())
        while int(time.time()) <= revoked:
            time.sleep(0.05)
        self.ask("scontrol", "update", f"jobid={number}", "StartTime=now")
        self.wait(number, "the job to run again", lambda job: job["JobState"] == "RUNNING")


@contextmanager
def slurm() -> Iterator[Slurm]:
    """A cluster whose nodes are idle."""
    assert os.geteuid() == 0, "slurmd needs root"
    for daemon in ("munged", "slurmctld", "slurmd"):
        assert shutil.which(daemon, path="/usr/sbin"), f"no {daemon}: install Debian's slurmctld, slurmd and munge"
    # Not pytest's folder: the names of munge's socket must stay short.
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        cluster = Slurm(folder)
        for name in ("munge", "state", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir()
        key = folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        controller_port, one_port, two_port = free_ports(3)
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                folder=folder,
                controller_port=controller_port,
                one_port=one_port,
                two_port=two_port,
                hostname=socket.gethostname(),
            )
        )
        munge = [f"--{name}={folder}/munge/{file}" for name, file in MUNGE_FILES.items()]
        stack.enter_context(daemon_running(cluster, "munged", "--foreground", "--force", *munge))
        until((folder / "munge" / "socket").exists, "munged")
        stack.enter_context(daemon_running(cluster, "slurmctld", "-D"))
        (folder / "hosts").write_text(f"{Path('/etc/hosts').read_text()}\n127.0.0.1 {' '.join(NODES)}\n")
        for node in NODES:
            # The nodes' names lead to this machine, for their jobs alone.
            resolving = ["unshare", "--mount", "sh", "-c", 'mount --bind hosts /etc/hosts && exec "$@"', "sh"]
            stack.enter_context(daemon_running(cluster, *resolving, "slurmd", "-D", "-N", node, name=f"slurmd-{node}"))
        until(lambda: nodes_are_idle(cluster), "the nodes")
        stack.callback(end_all_jobs, cluster)
        yield cluster


MUNGE_FILES = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}


@contextmanager
def daemon_running(cluster: Slurm, *command: str, name: str = "") -> Iterator[None]:
    with (cluster.folder / f"{name or command[0]}.log").open("wb") as log:
        process = subprocess.Popen(command, env=cluster.environment, stdout=log, stderr=log, cwd=cluster.folder)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, f"{what} did not come up"
        time.sleep(0.1)


def nodes_are_idle(cluster: Slurm) -> bool:
    ended = subprocess.run(
        ["sinfo", "--noheader", "--format=%T"], env=cluster.environment, capture_output=True, text=True, check=False
    )
    return ended.stdout.strip() == "idle"


def end_all_jobs(cluster: Slurm) -> None:
    cluster.ask("scancel", "--signal=KILL", "--full", "--user=root")
    cluster.ask("scancel", "--user=root")
    until(lambda: nodes_are_idle(cluster), "the end of all jobs")
