"""Daemons as objects of the process that starts them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

from tilewright.rpc.settings import Settings
from tilewright.support.errors import RPCError

_STOP_SECONDS = 5.0


class Daemon:
    """A process that runs as long as this object, or until ``terminate``."""

    def __init__(self, settings: Settings) -> None:
        settings.paths = tuple(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tilewright.rpc.daemon"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if settings.silent else None,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(settings.paths)},
            text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(settings.to_json() + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline() or "{}")
        except (OSError, ValueError) as error:
            self.terminate()
            raise RPCError(f"the {settings.what} did not start: {error}") from error
        if "port" not in answer:
            self.terminate()
            raise RPCError(answer.get("error", f"the {settings.what} did not start"))
        self.host = settings.host
        self.port: int = answer["port"]

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def terminate(self) -> None:
        """Ends the process and all it has started."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            with contextlib.suppress(OSError):  # it is gone
                process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.terminate()
