"""Containers, through testcontainers, and images of what this machine has where none can be pulled.

An engine that is not there is a failure.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import docker
import docker.errors
from testcontainers.core.config import ConnectionMode, testcontainers_config
from testcontainers.core.container import DockerContainer

# Seconds that what runs in a container may take to come up; a failure after that, never a skip.
PATIENCE = 60.0

# Its own cleaner is one more image to pull, and every container here is stopped by its fixture.
testcontainers_config.ryuk_disabled = True
# Ports are published on loopback, whatever testcontainers makes of the machine.
testcontainers_config.connection_mode_override = ConnectionMode.docker_host
testcontainers_config.tc_host_override = "127.0.0.1"


def engine() -> docker.DockerClient:
    """The engine that DOCKER_HOST names, or the machine's."""
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        raise AssertionError(f"no container engine answers (DOCKER_HOST names one): {error}") from error
    return client


class Container:
    """A running container, with its ports on loopback."""

    def __init__(
        self,
        image: str,
        command: Sequence[str] = (),
        *,
        ports: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        **more: object,
    ) -> None:
        """`more` goes to the engine as it is."""
        engine().close()
        container = DockerContainer(image, command=list(command), **more)
        for name, value in (env or {}).items():
            container.with_env(name, value)
        for port in ports:
            container.ports[f"{port}/tcp"] = ("127.0.0.1", None)
        self._container = container.start()

    def address(self, port: int) -> str:
        """Where a port of the container is reached: `host:port`."""
        return f"127.0.0.1:{self._container.get_exposed_port(port)}"

    def wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            self._container.reload()
            assert self._container.status == "running", f"the container ended: {self.said()}"
            assert time.monotonic() < deadline, f"the server did not come up: {self.said()}"
            time.sleep(0.1)

    def run(self, *command: str) -> tuple[int, str]:
        """Runs a command inside; returns its status and what it said."""
        status, said = self._container.exec(list(command))
        return int(status), said.decode(errors="replace")

    def wait(self) -> int:
        """The status with which the container ends by itself."""
        return int(self._container.wait())

    def said(self) -> str:
        return "".join(part.decode(errors="replace") for part in self._container.get_logs())[-4000:]

    def stop(self) -> None:
        self._container.stop()


class Image:
    """An image that holds nothing but the files it is given; built once for the same content."""

    def __init__(self, name: str, entrypoint: Sequence[str]) -> None:
        self._name = name
        self._files: dict[str, Path] = {}
        words = ", ".join(f'"{word}"' for word in entrypoint)
        # Servers want a place for temporary files; an empty image has none.
        self._recipe = f"FROM scratch\nCOPY content/ /\nENV PATH=/\nENTRYPOINT [{words}]\nWORKDIR /tmp\n"

    def add(self, inside: str, outside: Path) -> None:
        """A file, or a folder with all below it, at an absolute path in the image."""
        self._files[inside] = outside

    def build(self) -> str:
        """Builds it if need be; returns its tag."""
        digest = hashlib.sha256(self._recipe.encode())
        for inside, outside in sorted(self._files.items()):
            # A folder is taken for unchanged as long as nothing is added to it or removed.
            content = outside.read_bytes() if outside.is_file() else str(outside.stat().st_mtime_ns).encode()
            digest.update(f"{inside} {hashlib.sha256(content).hexdigest()}\n".encode())
        tag = f"publish-test/{self._name}:{digest.hexdigest()[:16]}"
        client = engine()
        try:
            client.images.get(tag)
        except docker.errors.ImageNotFound:
            with self._context() as context:
                client.images.build(fileobj=context, custom_context=True, tag=tag, rm=True)
        finally:
            client.close()
        return tag

    def _context(self) -> io.BytesIO:
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as archive:
            recipe = tarfile.TarInfo("Dockerfile")
            recipe.size = len(self._recipe)
            archive.addfile(recipe, io.BytesIO(self._recipe.encode()))
            for inside, outside in self._files.items():
                archive.add(outside.resolve(), f"content{inside}", filter=_without_caches)
        context.seek(0)
        return context


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = Path(entry.name).name
    return None if name in {"__pycache__", "site-packages", "dist-packages", "test"} else entry
