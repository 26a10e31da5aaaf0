"""The process of a server, a tracker or a proxy: ``python -m tilewright.rpc.daemon``.

It reads its settings as one line of JSON (the key among them, which so is in no command line and no environment),
answers with one line that has its port or an error, and ends when its standard input does: with whoever started it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import logging
import os
import runpy
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tilewright.rpc.addresses import listen
from tilewright.rpc.listener import Listener
from tilewright.rpc.loop import READ, Loop
from tilewright.rpc.proxy_service import ProxyService, ReverseServer
from tilewright.rpc.registrar import Registrar
from tilewright.rpc.settings import Settings
from tilewright.rpc.tracker_service import TrackerService
from tilewright.runtime.loading import load_module
from tilewright.support.errors import RPCError, TilewrightError

_loaded: list[object] = []


class Closable(Protocol):
    """What runs in a loop."""

    def close(self) -> None:
        """Ends it."""


def _load(path: str) -> None:
    """Loads a library into this process: an artefact, or any other library, whose functions register themselves."""
    if Path(path).suffix in (".tar", ".o"):
        _loaded.append(load_module(path))
    else:
        _loaded.append(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))


def _call_back(module: str, name: str, file: str) -> None:
    if module == "__main__":
        found = runpy.run_path(file, run_name="__tilewright_server__")[name]
    else:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    callback: Callable[[], Any] = found
    callback()


def start(loop: Loop, settings: Settings) -> tuple[Closable, socket.socket | None]:
    """What the settings ask for, running in a loop, and the socket where it listens."""
    key = settings.secret()
    if settings.what == "server":
        for path in settings.libraries:
            _load(path)
        if settings.callback is not None:
            _call_back(*settings.callback)
        if settings.is_proxy:
            return ReverseServer(loop, (settings.host, settings.port), key, settings.label), None
    listening = listen(settings.host, settings.port, settings.port_end, key)
    if settings.what == "tracker":
        return TrackerService(loop, listening, key), listening
    if settings.what == "proxy":
        return ProxyService(loop, listening, key, settings.tracker, settings.custom_addr or ""), listening
    registrar = None
    if settings.tracker is not None:
        port = int(listening.getsockname()[1])
        registrar = Registrar(loop, settings.tracker, key, settings.label, settings.custom_addr or "", port)
    return Listener(loop, listening, key, settings.label, registrar, settings.most_seconds), listening


def main() -> int:
    """Runs a daemon."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    try:
        settings = Settings.from_json(sys.stdin.readline())
        logging.basicConfig(
            level=logging.ERROR if settings.silent else logging.INFO, format="%(asctime)s %(message)s"
        )
        sys.path[:] = [path for path in settings.paths if path not in sys.path] + sys.path
        loop = Loop()
        running, listening = start(loop, settings)
    except (TilewrightError, OSError, ValueError, ImportError, AttributeError, KeyError) as error:
        message = error.message if isinstance(error, TilewrightError) else f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps({"error": message}) + "\n")
        return 1
    port = listening.getsockname()[1] if listening is not None else settings.port
    sys.stdout.write(json.dumps({"port": port}) + "\n")
    sys.stdout.flush()
    os.dup2(2, 1)  # what sessions print is not for whoever reads the port
    loop.watch(0, READ, lambda events: loop.stop())
    try:
        loop.run()
    finally:
        running.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RPCError as error:
        sys.exit(f"error: {error.message}")
