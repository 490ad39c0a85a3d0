"""Real proxies: tinyproxy (Debian `tinyproxy-bin`) and squid, on loopback and free ports."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.servers import Child, clean_environment, free_ports

_TINYPROXY = """
Port {port}
Listen 127.0.0.1
Timeout 60
LogFile "{folder}/requests"
LogLevel Info
Allow 127.0.0.1
{more}
"""
_SQUID = """
http_port 127.0.0.1:{port}
acl all_hosts src all
acl refused dstdomain refused.invalid
http_access deny refused
http_access allow all_hosts
cache deny all
access_log none
cache_log {folder}/requests
pid_filename {folder}/pid
coredump_dir {folder}
shutdown_lifetime 0 seconds
cache_effective_user {user}
logfile_rotate 0
pinger_enable off
{more}
"""


class Proxy:
    """A forward proxy at `url` that notes in a file what it is asked for."""

    def __init__(self, command: Callable[[Path, int], list[str]]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="proxy-"))
        self._folder.chmod(0o777)
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._child = Child(command(self._folder, port), self._folder, clean_environment())
        self._child.wait_until(lambda: _listens(port))

    def asked(self) -> str:
        """What it noted so far."""
        return (self._folder / "requests").read_text()

    def stop(self) -> None:
        self._child.stop()
        shutil.rmtree(self._folder)


def tinyproxy(more: str = "") -> Proxy:
    def command(folder: Path, port: int) -> list[str]:
        file = folder / "tinyproxy.conf"
        file.write_text(_TINYPROXY.format(port=port, folder=folder, more=more))
        return ["/usr/bin/tinyproxy", "-d", "-c", str(file)]

    return Proxy(command)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
