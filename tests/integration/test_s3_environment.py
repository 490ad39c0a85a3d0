"""Nothing that a machine's set-up says changes a byte of a request."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.fault_proxy import Asked, FaultProxy
from tests.support.moto_server import Moto
from tests.support.program import CLEAN, PROGRAM
from tests.support.s3_jobs import S3Job, s3_job

# What differs from one request to the next: its moment, its number, and so its signature.
VARIES = {"x-amz-date", "amz-sdk-invocation-id"}
CONFIG = """
[default]
region = eu-central-1
endpoint_url = {elsewhere}
retry_mode = adaptive
max_attempts = 9
defaults_mode = cross-region
request_checksum_calculation = when_supported
response_checksum_validation = when_supported
use_fips_endpoint = true
use_dualstack_endpoint = true
ca_bundle = /nonexistent
sdk_ua_app_id = hostile
user_agent_appid = hostile
parameter_validation = false
tcp_keepalive = true
ignore_configured_endpoint_urls = false
account_id_endpoint_mode = required
sigv4a_signing_region_set = *
auth_scheme_preference = sigv4a
request_min_compression_size_bytes = 1
s3 =
  addressing_style = virtual
  use_accelerate_endpoint = true
  payload_signing_enabled = true
  us_east_1_regional_endpoint = legacy
  signature_version = s3
proxy = {elsewhere}
[plugins]
hostile = hostile_plugin
"""
CREDENTIALS = """
[default]
aws_access_key_id = AKIAHOSTILE
aws_secret_access_key = hostile
aws_session_token = hostile
"""


class Hostile(NamedTuple):
    """Set-up that would send requests elsewhere, change them, or run code."""

    env: dict[str, str]
    elsewhere: FaultProxy
    datagrams: socket.socket
    traces: list[Path]

    def was_obeyed(self) -> list[object]:
        """Whatever shows that something of it was taken up."""
        heard: list[object] = [*self.elsewhere.asked, *(trace for trace in self.traces if trace.exists())]
        with contextlib.suppress(BlockingIOError):
            heard.append(self.datagrams.recv(65536))
        return heard


@pytest.fixture
def hostile(moto: Moto, tmp_path: Path) -> Iterator[Hostile]:
    home = tmp_path / "home"
    (home / ".aws" / "models" / "s3" / "2006-03-01").mkdir(parents=True)
    (home / ".aws" / "models" / "s3" / "2006-03-01" / "service-2.json").write_text("{}")
    (home / ".aws" / "models" / "endpoints.json").write_text("{}")
    (home / ".netrc").write_text("default login hostile password hostile\n")
    (home / ".netrc").chmod(0o600)
    trace = tmp_path / "plugin-ran"
    code = f"open({str(trace)!r}, 'w').close()\ndef initialize_client_plugin(client): pass\n"
    (tmp_path / "hostile_plugin.py").write_text(code)
    (tmp_path / "openssl.cnf").write_text(
        "openssl_conf = x\n[x]\nproviders = y\n[y]\nhostile = z\n[z]\nmodule = /x.so\n"
    )
    with FaultProxy(moto.endpoint) as elsewhere, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        (home / ".aws" / "config").write_text(CONFIG.format(elsewhere=elsewhere.endpoint))
        (home / ".aws" / "credentials").write_text(CREDENTIALS)
        url = elsewhere.endpoint
        env = {
            "HOME": str(home),
            "PYTHONPATH": str(tmp_path),
            "BOTOCORE_EXPERIMENTAL__PLUGINS": "hostile=hostile_plugin",
            "BOTO_EXPERIMENTAL__ADD_PROXY_HOST_HEADER": "true",
            "BOTO_CONFIG": str(home / ".aws" / "config"),
            "AWS_PROFILE": "default",
            "AWS_DEFAULT_PROFILE": "default",
            "AWS_CONFIG_FILE": str(home / ".aws" / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws" / "credentials"),
            "AWS_ACCESS_KEY_ID": "AKIAHOSTILE",
            "AWS_SECRET_ACCESS_KEY": "hostile",
            "AWS_SESSION_TOKEN": "hostile",
            "AWS_SECURITY_TOKEN": "hostile",
            "AWS_BEARER_TOKEN_S3": "hostile",
            "AWS_REGION": "eu-central-1",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ENDPOINT_URL": url,
            "AWS_ENDPOINT_URL_S3": url,
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
            "AWS_RETRY_MODE": "adaptive",
            "AWS_MAX_ATTEMPTS": "9",
            "AWS_DEFAULTS_MODE": "cross-region",
            "AWS_REQUEST_CHECKSUM_CALCULATION": "when_supported",
            "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_supported",
            "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT": "legacy",
            "AWS_S3_DISABLE_EXPRESS_SESSION_AUTH": "false",
            "AWS_S3_DISABLE_MULTIREGION_ACCESS_POINTS": "true",
            "AWS_S3_USE_ARN_REGION": "true",
            "AWS_STS_REGIONAL_ENDPOINTS": "legacy",
            "AWS_USE_FIPS_ENDPOINT": "true",
            "AWS_USE_DUALSTACK_ENDPOINT": "true",
            "AWS_DATA_PATH": str(home / ".aws" / "models"),
            "AWS_CSM_ENABLED": "true",
            "AWS_CSM_HOST": "127.0.0.1",
            "AWS_CSM_PORT": str(datagrams.getsockname()[1]),
            "AWS_CSM_CLIENT_ID": "hostile",
            "AWS_SDK_UA_APP_ID": "hostile",
            "AWS_EXECUTION_ENV": "hostile",
            "AWS_ACCOUNT_ID": "123456789012",
            "AWS_ACCOUNT_ID_ENDPOINT_MODE": "required",
            "AWS_SIGV4A_SIGNING_REGION_SET": "*",
            "AWS_AUTH_SCHEME_PREFERENCE": "sigv4a",
            "AWS_REQUEST_MIN_COMPRESSION_SIZE_BYTES": "1",
            "AWS_CA_BUNDLE": "/nonexistent",
            "REQUESTS_CA_BUNDLE": "/nonexistent",
            "CURL_CA_BUNDLE": "/nonexistent",
            "SSL_CERT_FILE": "/nonexistent",
            "SSL_CERT_DIR": "/nonexistent",
            "SSLKEYLOGFILE": str(tmp_path / "keys"),
            "OPENSSL_CONF": str(tmp_path / "openssl.cnf"),
            "NETRC": str(home / ".netrc"),
            **{name: url for lower in ("http_proxy", "https_proxy", "all_proxy") for name in (lower, lower.upper())},
            "NO_PROXY": "nowhere",
            "no_proxy": "nowhere",
        }
        yield Hostile(env, elsewhere, datagrams, [trace, tmp_path / "keys"])


@pytest.fixture
def job(moto: Moto, tmp_path: Path) -> Iterator[S3Job]:
    with s3_job(moto, tmp_path) as job:
        yield job


def essence(asked: Asked) -> tuple[object, ...]:
    """All of a request but what differs anyway."""
    headers = [
        (name, re.sub("Signature=[0-9a-f]*|/[0-9]{8}/", "", value))
        for name, value in asked.headers
        if name.lower() not in VARIES
    ]
    return asked.method, asked.target, headers, asked.body


def requests_of(job: S3Job, env: dict[str, str]) -> list[tuple[object, ...]]:
    """What the program sends for each verb, on a root that is the same each time."""
    job.wire.asked.clear()
    for step in (1, 2):
        job.save(step, "weights")
    for words in (
        ("publish", "-epoch", "1", *job.flags, job.url(1), "1"),
        ("publish", "-epoch", "1", *job.flags, job.url(2), "2"),
        ("resolve", *job.flags),
        ("prune", "-keep", "1", *job.flags),
        ("prune", "-keep", "1", *job.flags),
    ):
        done = subprocess.run([PROGRAM, *words], env=CLEAN | env, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    for path in job.place.paths():
        job.place.store().delete(path.encode())
    return [essence(asked) for asked in job.wire.asked]


def test_the_program_sends_the_same_bytes_in_every_environment(job: S3Job, hostile: Hostile) -> None:
    """env.2, proxy.1"""
    plain = requests_of(job, {})
    assert len(plain) > 10
    assert requests_of(job, hostile.env) == plain
    assert hostile.was_obeyed() == []


def test_sslkeylogfile_is_ignored(job: S3Job, hostile: Hostile, tmp_path: Path) -> None:
    """env.2"""
    (tmp_path / "creds" / "endpoint").write_text(job.wire.endpoint.replace("http:", "https:"))
    words = [PROGRAM, "resolve", *job.flags, "-timeout", "3s"]
    done = subprocess.run(words, env=CLEAN | hostile.env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert hostile.was_obeyed() == []


LAYER = """
import sys
from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.domain.credentials import Credentials
from publish.domain.ports import Namespace
from publish.domain.root import S3Root
bucket, endpoint = sys.argv[1:]
key = Credentials("AKIAMOTOMOTOMOTOMOTO", "moto-takes-any-secret", None, endpoint, "us-east-1")
store = S3Store(S3Root(bucket, "layer"), key, ConnectionSettings(None, "/etc/ssl/certs/ca-certificates.crt", 20.0))
store.put(b"x", b"body", only_if_new=False)
store.create(Namespace.PUB, b"entry")
store.list_entries(Namespace.PUB, None)
store.size(b"x")
store.read(b"x", 10)
store.remove_entries(Namespace.PUB, [b"entry", b"other"])
"""
# What libraries read straight from the environment is only kept out by emptying it.
FIRST_LAYER_ONLY = {
    "BOTOCORE_EXPERIMENTAL__PLUGINS",
    "BOTO_EXPERIMENTAL__ADD_PROXY_HOST_HEADER",
    "OPENSSL_CONF",
    "SSLKEYLOGFILE",
}


def test_the_client_ignores_an_environment_that_is_not_emptied(job: S3Job, hostile: Hostile) -> None:
    """env.2: the second layer."""
    recorded = []
    for env in ({}, {name: value for name, value in hostile.env.items() if name not in FIRST_LAYER_ONLY}):
        job.wire.asked.clear()
        words = [sys.executable, "-c", LAYER, job.place.root.bucket, job.wire.endpoint]
        subprocess.run(words, env=CLEAN | env, capture_output=True, timeout=60, check=True)
        recorded.append([essence(asked) for asked in job.wire.asked])
    plain, beset = recorded
    assert len(plain) == 6
    assert beset == plain
    assert hostile.was_obeyed() == []
