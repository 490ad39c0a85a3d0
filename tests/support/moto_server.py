"""moto as a server of its own: a mock, for speed; never the only S3 of a test."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.servers import Child, Key, answers, clean_environment, free_ports

# One request at a time: moto looks whether a name is taken and then takes it, so of two threads both may win.
_SERVE = """
import os, sys, threading
os.environ["MOTO_PORT"] = sys.argv[1]
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app, run_simple
moto = DomainDispatcherApplication(create_backend_app)
lock = threading.Lock()
def serve(environ, start_response):
    with lock:
        return moto(environ, start_response)
run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True, request_handler=MotoRequestHandler)
"""


class Moto:
    """In a process, because moto hooks into the botocore of the one that imports it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="moto-"))
        (port,) = free_ports(1)
        self.key = Key("AKIAMOTOMOTOMOTOMOTO", "moto-takes-any-secret")
        self.endpoint = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-c", _SERVE, str(port)]
        self._child = Child(command, self._folder, clean_environment())
        self._child.wait_until(lambda: answers(self.endpoint))

    def stop(self) -> None:
        self._child.stop()
        shutil.rmtree(self._folder)
