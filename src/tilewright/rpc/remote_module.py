"""Functions and modules of a session: called here, they run there."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.rpc.frames import Kind, text
from tilewright.rpc.owner import Owner
from tilewright.rpc.remote_array import RemoteDevice
from tilewright.rpc.remote_machine import RemoteMachine
from tilewright.rpc.values import U8, U64
from tilewright.runtime.benchmark import BenchmarkResult, evaluator_in_groups, require_counts
from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.foreign import ForeignMachine, ForeignModule
from tilewright.runtime.module import Module
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.reference import HoldsReference

_LONG_TEXT = 1 << 18


class RemoteFunction(PackedFunc):
    """A function of a session: called here, it runs there."""

    __slots__ = ("_local", "_start", "peer", "remote_handle")

    def __init__(self, peer: Owner, handle: int, name: str = "") -> None:
        self.peer = peer
        self.remote_handle = handle
        self._start = U64.pack(handle)
        self._local: PackedFunc | None = None
        self._handle = 0
        self.name = name
        self.is_global = False
        self.is_python = True

    def __call__(self, *args: Any) -> Any:
        return self.peer.call(Kind.CALL, self._start, args)

    def _as_local(self) -> PackedFunc:
        """A function of this process that calls the remote one."""
        if self._local is None:
            peer, start = self.peer, self._start

            def call(*args: Any) -> Any:
                return peer.call(Kind.CALL, start, args)

            self._local = convert_to_tvm_func(call)
        return self._local

    @property
    def handle(self) -> int:
        """A function object of this process."""
        return self._as_local().handle

    @property
    def address(self) -> int:
        """The C function of this process."""
        return self._as_local().address

    @property
    def self_address(self) -> int:
        """What that is called with."""
        return self._as_local().self_address

    def __del__(self) -> None:
        peer = getattr(self, "peer", None)
        if peer is not None:
            peer.free(self.remote_handle)

    def __repr__(self) -> str:
        return f"RemoteFunction({self.name or self.remote_handle}, {self.peer})"


class RemoteModule(HoldsReference, ForeignModule):
    """A module of a session."""

    def __init__(self, peer: Owner, handle: int, type_key: str) -> None:
        super().__init__(type_key)
        self.peer = peer
        self.remote_handle = handle

    def __del__(self) -> None:
        peer = getattr(self, "peer", None)
        if peer is not None:
            peer.free(self.remote_handle)

    def _remote(self, name: str, query_imports: bool) -> RemoteFunction | None:
        found = self._functions.get(name)
        if found is None:
            head = U64.pack(self.remote_handle) + text(name) + U8.pack(query_imports)
            found = self.peer.ask(Kind.MODULE_FUNCTION, head)
            if found is None:
                return None
            self._functions[name] = found
        assert isinstance(found, RemoteFunction)
        return found

    def _find(self, name: str) -> PackedFunc | None:
        return self._remote(name, False)

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """A function by name."""
        found = self._remote(name, query_imports)
        if found is None:
            raise failure(
                "AttributeError", f"the {self.type_key} module of {self.peer} has no function {name!r}"
            )
        return found

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """True if ``get_function`` would find it."""
        return self._remote(name, query_imports) is not None

    def import_module(self, module: Module) -> None:
        """Attaches another module of the same session."""
        if not isinstance(module, RemoteModule) or module.peer is not self.peer:
            raise failure("ValueError", f"a module of {self.peer} imports modules of {self.peer} only")
        self.peer.request(Kind.MODULE_IMPORT, U64.pack(self.remote_handle) + U64.pack(module.remote_handle))
        self._imports.append(module)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        f_preproc: str = "",
        *,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures ``func_name`` there: what it reports has no time of the connection in it."""
        function = self.get_function(func_name, query_imports=True)
        if cache_flush_bytes:
            raise failure(
                "ValueError",
                "on another machine, f_preproc='cache_flush_cpu_non_first_arg' empties the caches",
            )
        time_remote(self.peer, function, dev, number, repeat, min_repeat_ms, f_preproc)  # checks them

        return evaluator_in_groups(
            lambda repeats: time_remote(self.peer, function, dev, number, repeats, min_repeat_ms, f_preproc),
            repeat,
            cooldown_interval_ms,
            repeats_to_cooldown,
            limit_zero_time_iterations,
        )

    def graph_executor(self, graph_json: str, devices: Sequence[Device]) -> Module:
        """An executor there of a graph whose functions are in this module."""
        create = self.peer.global_function("tvm.graph_executor.create")
        places = [number for one in devices for number in self.peer.place(one)]
        # A text may be longer than the arguments of a request may be; bytes may not.
        described = graph_json if len(graph_json) < _LONG_TEXT else graph_json.encode()
        made: Module = create(described, self, *places)
        return made

    def virtual_machine(self, devices: Sequence[Device], keeps_memory: bool) -> ForeignMachine:
        """A machine there for the program that this module imports."""
        create = self.peer.global_function("tilewright.vm.create")
        return RemoteMachine(create(self, keeps_memory, *devices), devices[0])

    def export_library(self, file_name: str, *args: Any, **kwargs: Any) -> None:
        """An error: the module's code is on the other machine."""
        raise failure(
            "ValueError",
            f"a module of {self.peer} cannot be exported from here; session.download brings its file",
        )

    def __repr__(self) -> str:
        return f"RemoteModule({self.type_key}, {self.peer})"


def time_remote(
    peer: Owner,
    function: PackedFunc,
    dev: Device,
    number: int,
    repeat: int,
    min_repeat_ms: int,
    f_preproc: str,
) -> Callable[..., BenchmarkResult]:
    """A function that measures a function of a session on its arguments."""
    require_counts(number, repeat, min_repeat_ms)
    if not isinstance(dev, RemoteDevice) or dev.peer is not peer:
        raise failure(
            "ValueError", f"cannot measure a function of {peer} on {dev}; use a device of the session"
        )
    assert isinstance(function, RemoteFunction)
    place = struct.pack(
        "<QiiIII", function.remote_handle, dev.remote_type, dev.device_id, number, repeat, min_repeat_ms
    )

    def evaluate(*args: Any) -> BenchmarkResult:
        kept = function  # the handle stays good as long as the evaluator lives
        seconds = kept.peer.call(Kind.TIME, place + text(f_preproc), args)
        return BenchmarkResult(struct.unpack(f"<{len(seconds) // 8}d", seconds))

    return evaluate
