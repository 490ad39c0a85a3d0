"""watch.11, vault.9: a watch of weeks refreshes its credentials often, and neither threads, sockets nor memory grow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority
from tests.support.fake_vault import FakeVault, drips
from tests.support.fault_proxy import FaultProxy
from tests.support.private_files import write_private_directory
from tests.support.wire_faults import answers

# What a process holds now, after a while for threads that are about to end.
STATE = """
import gc, json, os, sys, threading, time
def state():
    end = time.monotonic() + 10
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)
    gc.collect()
    (resident,) = [line for line in open("/proc/self/status") if line.startswith("VmRSS")]
    return threading.active_count(), len(os.listdir("/proc/self/fd")), int(resident.split()[1]) // 1024
def soak(times, work):
    for _ in range(20):
        work()
    before = state()
    processor = time.process_time()
    for _ in range(times):
        work()
    processor = time.process_time() - processor
    after = state()
    print(json.dumps([before, after, processor]))
"""
VAULT = """
from publish.adapters.vault import VaultSource
from publish.domain.errors import SourceUnavailable
from publish.domain.vault_url import parse_vault_url
address, approle, bundle, times = sys.argv[1:]
source = VaultSource(
    "vault:", parse_vault_url(f"{address}/s3?auth=approle&approle={approle}"), ca_bundle=bundle, environment={},
    timeout=60,
)
def read():
    try:
        source.read(0.03)
    except SourceUnavailable:
        return
    raise AssertionError("it was read")
soak(int(times), read)
"""
S3 = """
from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.domain.credential_refresh import CredentialRefresher
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsRejected
from publish.domain.ports import Namespace
from publish.domain.root import S3Root
endpoint, _, bundle, times = sys.argv[1:]
rejection = CredentialsRejected("GET: ExpiredToken", "ExpiredToken", refreshable=True, resend_unchanged=True)
credentials = Credentials("AKID", "canary", None, endpoint, "us-east-1")
def connect(fresh):
    return S3Store(S3Root("bucket", "run"), fresh, ConnectionSettings(None, bundle, 5.0))
refresh = CredentialRefresher(credentials, lambda: ("file:/creds", credentials), connect, lambda _: None)
store = connect(credentials)
def work():
    global store
    store = refresh(rejection, store)
    store.list_entries(Namespace.PUB, None)
soak(int(times), work)
"""


def soak(program: str, *arguments: str) -> None:
    command = [sys.executable, "-c", STATE + program, *arguments]
    done = subprocess.run(command, capture_output=True, check=False, timeout=900)
    assert (done.returncode, done.stderr) == (0, b"")
    (threads, descriptors, resident), after, processor = json.loads(done.stdout)
    assert after[0] == threads == 1
    assert after[1] <= descriptors + 2
    assert after[2] <= resident + 12, f"{resident} MiB before, {after[2]} MiB after"
    # A thread that is left over polls its socket for ever: five of them kept a core busy.
    assert processor < int(arguments[-1]) * 0.5


TIMES = [30, pytest.param(1_000, marks=[pytest.mark.exhaustive, pytest.mark.timeout(900)])]


@pytest.fixture
def paths(tmp_path: Path, authority: CertificateAuthority) -> tuple[str, str]:
    """An AppRole directory and a small CA bundle."""
    approle = write_private_directory(tmp_path / "approle", {"role_id": "canary", "secret_id": "canary"})
    return str(approle), str(authority.write(tmp_path))


@pytest.mark.parametrize("times", TIMES)
def test_a_vault_that_hangs_at_every_refresh_leaves_nothing_behind(times: int, paths: tuple[str, str]) -> None:
    """vault.9"""
    with FakeVault(login=drips) as server:
        soak(VAULT, server.address, *paths, str(times))


@pytest.mark.parametrize("times", TIMES)
def test_refreshing_the_credentials_of_a_store_leaves_nothing_behind(times: int, paths: tuple[str, str]) -> None:
    """watch.11"""
    with FaultProxy("http://127.0.0.1:9") as wire:
        wire.spoil_all("GET", answers("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"))
        soak(S3, wire.endpoint, *paths, str(times))
