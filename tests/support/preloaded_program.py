"""The program run many times in a row, quickly: one process has imported it, and forks for each run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.program import CLEAN, Result

_SERVER = """
import json, os, sys
from time import monotonic
import publish.cli.app, publish.cli.output, publish.__main__ as program
for line in sys.stdin:
    words, out, err = json.loads(line)
    child = os.fork()
    if not child:
        for path, stream in (out, 1), (err, 2):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        sys.argv[1:] = words
        program.STARTED = monotonic()
        program.run()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Preloaded:
    """A process to fork from; the program's exit statuses come back line by line."""

    def __init__(self) -> None:
        """Starts it, with the environment of a login and no more."""
        self._folder = tempfile.TemporaryDirectory()
        self._out, self._err = (Path(self._folder.name, stream) for stream in ("out", "err"))
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=CLEAN, text=True
        )

    def run(self, words: Sequence[str]) -> Result:
        """Runs the program to its end."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps([words, str(self._out), str(self._err)]) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        return Result(status, self._out.read_bytes(), self._err.read_bytes())

    def close(self) -> None:
        """Ends the process."""
        self._server.communicate(timeout=10)
        self._folder.cleanup()
