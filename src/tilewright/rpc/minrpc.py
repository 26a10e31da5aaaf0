"""A server and one's own functions in one program, for ``PopenSession``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.runtime.failure import failure
from tilewright.support.cbuild import SERVER_FLAGS, embedded_objects, server_sources

_SERVERS = ("posix_popen_server",)


def with_minrpc(
    compile_func: Callable[..., Any], server: str = "posix_popen_server", runtime: str = "libtvm"
) -> Callable[..., Any]:
    """A compile function that links the C server into the program that ``compile_func`` makes.

    For code of a target with ``--system-lib``, whose functions are then those of the session's ``system_lib``::

        library.export_library("there", fcompile=rpc.with_minrpc(cc.create_executable))
        functions = rpc.PopenSession("there").system_lib()

    The program brings the whole runtime, so ``runtime`` changes nothing.
    """
    if server not in _SERVERS:
        raise failure("ValueError", f"there is no server {server!r}; there is {_SERVERS[0]!r}")
    if not callable(compile_func):
        raise failure("TypeError", "with_minrpc takes a compile function, such as cc.create_executable")
    find_triple = getattr(compile_func, "get_target_triple", None)

    def compile_with_server(
        output: str, objects: Sequence[str], options: Sequence[str] | None = None, **kwargs: Any
    ) -> None:
        runtime_objects = set(map(str, embedded_objects((find_triple and find_triple()) or "")))
        own = [str(one) for one in objects if str(one) not in runtime_objects]
        flags = [*(options or ()), *SERVER_FLAGS, "-pthread", "-lm", "-ldl"]
        compile_func(output, [*own, *map(str, server_sources())], options=flags, **kwargs)
        Path(output).chmod(0o755)

    if find_triple is not None:
        compile_with_server.get_target_triple = find_triple  # type: ignore[attr-defined]
    return compile_with_server
