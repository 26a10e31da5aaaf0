"""Packages on remote devices: sent there, run there and measured there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tilewright.driver.profile.kernels import KernelProfile, measure_kernels
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.executors import FunctionRunnable, Runnable, Values, flat
from tilewright.driver.tvmc.model import TVMCPackage
from tilewright.rpc.client import RPCSession, connect
from tilewright.rpc.remote_array import RemoteDevice
from tilewright.rpc.remote_executor import RemoteGraphExecutor
from tilewright.rpc.remote_module import RemoteModule
from tilewright.rpc.tracker_session import connect_tracker
from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.ndarray import NDArray, array
from tilewright.runtime.params import save_param_dict
from tilewright.runtime.vm import VirtualMachine
from tilewright.support.errors import RPCError

SECONDS_FOR_A_DEVICE = 600


def open_session(hostname: str, port: int | str, rpc_key: str | None) -> RPCSession:
    """A session: on a device of the tracker there, or without a label on the server there."""
    try:
        if not rpc_key:
            return connect(hostname, int(port))
        with connect_tracker(hostname, int(port)) as tracker:
            return tracker.request(rpc_key, wait_seconds=SECONDS_FOR_A_DEVICE)
    except RPCError as problem:
        raise TVMCException(f"cannot run there: {problem.message}") from problem


def make_remote_runnable(package: TVMCPackage, session: RPCSession, device: str) -> Runnable:
    """A package, loaded on a device of a session."""
    content = package.content
    where = session.device(device)
    if not where.exist:
        raise TVMCException(f"the remote machine has no device {device}")
    name = "model.tar" if package.lib_path is None else Path(package.lib_path).name
    session.upload(package.lib_path or package.package_path, name)
    library = session.load_module(name)
    if content.executor == "vm":
        return _RemoteMachine(library, [one.name for one in content.inputs], where)
    if content.executor == "aot":
        function = library[content.name]
        return _RemoteFunction(library, content.name, function, package, where)
    if content.executor != "graph" or content.graph is None:
        raise TVMCException(f"{package.package_path} contains no model: its executor is {content.executor!r}")
    return _RemoteGraph(package, library, where)


class _RemoteGraph(Runnable):
    """A graph executor there."""

    def __init__(self, package: TVMCPackage, library: RemoteModule, device: RemoteDevice) -> None:
        content = package.content
        assert content.graph is not None
        executor = library.graph_executor(content.graph, [device])
        assert isinstance(executor, RemoteGraphExecutor)
        self._graph, self._executor, self._device = content.graph, executor, device
        if content.params:
            executor.load_params(save_param_dict(content.params))

    def set_inputs(self, values: Values) -> None:
        """The inputs of the runs that follow."""
        for name, value in values.items():
            self._executor.set_input(name, value)

    def run(self) -> list[np.ndarray[Any, Any]]:
        """The outputs, in order, as copies."""
        self._executor.run()
        return [self._executor.get_output(place).numpy() for place in range(self._executor.get_num_outputs())]

    def profile(self, repeat: int = 10) -> KernelProfile:
        """The time of every kernel. The limits of the machine there are not known."""
        return measure_kernels(self._executor, self._graph, repeat)

    def benchmark(self, repeat: int, number: int, end_to_end: bool = False) -> BenchmarkResult:
        """The times of runs there."""
        if end_to_end:
            return super().benchmark(repeat, number, end_to_end)
        return self._executor.time_evaluator("run", self._device, number, repeat)()


class _RemoteMachine(Runnable):
    """A virtual machine there."""

    def __init__(self, library: RemoteModule, names: list[str], device: RemoteDevice) -> None:
        self._machine = VirtualMachine(library, device)
        self._names, self._device = names, device
        self._arguments: list[NDArray] = []

    def set_inputs(self, values: Values) -> None:
        """The inputs of the runs that follow."""
        self._arguments = [array(values[name], self._device) for name in self._names]

    def run(self) -> list[np.ndarray[Any, Any]]:
        """The outputs, in order, as copies."""
        return flat(self._machine.invoke("main", *self._arguments))

    def benchmark(self, repeat: int, number: int, end_to_end: bool = False) -> BenchmarkResult:
        """The times of runs there."""
        return self._machine.benchmark(
            self._device, *self._arguments, repeat=repeat, number=number, end_to_end=end_to_end
        )

    def profile(self, repeat: int = 10) -> KernelProfile:
        """An error: only graphs are profiled there."""
        raise TVMCException(
            "kernels on remote devices are timed for the graph executor: compile the model for it"
        )


class _RemoteFunction(FunctionRunnable):
    """A model compiled ahead of time, there."""

    def __init__(
        self, library: RemoteModule, name: str, function: Any, package: TVMCPackage, device: RemoteDevice
    ) -> None:
        content = package.content
        super().__init__(function, content.inputs, content.outputs, content.workspace_bytes, device)
        self._library, self._name, self._device = library, name, device

    def benchmark(self, repeat: int, number: int, end_to_end: bool = False) -> BenchmarkResult:
        """The times of runs there."""
        if end_to_end:
            return super().benchmark(repeat, number, end_to_end)
        evaluate = self._library.time_evaluator(self._name, self._device, number, repeat)
        return evaluate(*self._arguments())
