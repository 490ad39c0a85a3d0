"""A real proxy, tinyproxy (Debian `tinyproxy-bin`), on loopback and a free port."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
from pathlib import Path

from tests.support.servers import Child, clean_environment, free_ports

PROGRAM = "/usr/bin/tinyproxy"

_TINYPROXY = """
Port {port}
Listen 127.0.0.1
Timeout 60
LogFile "{folder}/requests"
LogLevel Info
Allow 127.0.0.1
{more}
"""


class TinyProxy:
    """A forward proxy at `url` that notes what it is asked for. `more`: lines of its configuration."""

    def __init__(self, more: str = "") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="proxy-"))
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        file = self._folder / "tinyproxy.conf"
        file.write_text(_TINYPROXY.format(port=port, folder=self._folder, more=more))
        self._child = Child([PROGRAM, "-d", "-c", str(file)], self._folder, clean_environment())
        self._child.wait_until(lambda: _listens(port))

    def asked(self) -> str:
        """What it noted so far."""
        return (self._folder / "requests").read_text()

    def stop(self) -> None:
        self._child.stop()
        shutil.rmtree(self._folder)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
