"""moto as a server of its own: a mock, for speed; never the only S3 of a test."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.servers import Child, Key, answers, clean_environment, free_ports


class Moto:
    """In a process, because moto hooks into the botocore of the one that imports it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="moto-"))
        (port,) = free_ports(1)
        self.key = Key("AKIAMOTOMOTOMOTOMOTO", "moto-takes-any-secret")
        self.endpoint = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self._child = Child(command, self._folder, clean_environment())
        self._child.wait_until(lambda: answers(self.endpoint))

    def stop(self) -> None:
        self._child.stop()
        shutil.rmtree(self._folder)
