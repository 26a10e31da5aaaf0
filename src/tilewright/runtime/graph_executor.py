"""The graph executor of the C runtime: one call runs a whole model.

A ``GraphExecutor`` is a module whose functions are the executor's operations (``set_input``, ``run`` ...), as programs
that hold only a module expect. Its methods do the same more directly.
"""

from __future__ import annotations

import ctypes
import operator
import time
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_void_p
from typing import Any

from tilewright.runtime import interrupt as _interrupt
from tilewright.runtime.benchmark import BenchmarkResult, require_counts
from tilewright.runtime.device import Device
from tilewright.runtime.failure import check, failure, keep_exception
from tilewright.runtime.host_call import HostCall
from tilewright.runtime.input_values import matching
from tilewright.runtime.library import LIBRARY, QUICK, DLDevice, address_of
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import HOST, NDArray, numpyasarray
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.reference import HoldsReference
from tilewright.support.dtype import DataType
from tilewright.support.options import record_graphs

_FIND_TYPE = ctypes.CFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)
_RUN = address_of("tilewright_graph_run_packed")

# The methods that are functions of the module too.
_OPERATIONS = (
    "set_input",
    "set_input_zero_copy",
    "get_input",
    "get_input_index",
    "get_output",
    "get_num_inputs",
    "get_num_outputs",
    "get_output_index",
    "get_input_name",
    "get_output_name",
    "input_has_value",
    "input_is_parameter",
    "load_params",
    "share_params",
    "debug_get_output",
    "run_node_timed",
    "node_output",
)

assert _interrupt  # imported so that runs can be interrupted


class _Graph(HoldsReference):
    """Owns one reference to a graph of the C runtime."""

    def __init__(self, json: bytes, library: Module, devices: Sequence[Device]) -> None:
        #: True if all functions are compiled: a recording would not repeat what Python functions do.
        self.is_compiled = True

        def find(context: int, name: bytes) -> int | None:
            try:
                text = name.decode()
                if not library.implements_function(text, query_imports=True):
                    return None
                function = library.get_function(text, query_imports=True)
            except BaseException as error:  # noqa: BLE001 - it continues after the C code
                keep_exception(error)
                return None
            self.is_compiled &= not (function.is_python or function.is_global)
            QUICK.tilewright_object_retain(function.handle)
            return function.handle

        self.address = 0
        handle = c_void_p()
        callback = _FIND_TYPE(find)
        places = (DLDevice * len(devices))(*[device.described for device in devices])
        check(
            LIBRARY.tilewright_graph_create_on(
                json, len(json), callback, None, places, len(devices), ctypes.byref(handle)
            )
        )
        self.address = handle.value or 0

    def __del__(self) -> None:
        if self.address and QUICK is not None:
            QUICK.tilewright_graph_release(self.address)


class GraphExecutor(Module):
    """A graph with its functions, its memory and its parameters, ready to run."""

    def __init__(
        self, graph_json: str, library: Module, device: Device | Sequence[Device] | None = None
    ) -> None:
        """Reads the graph and finds every function it calls in the library or what that imports.

        Tensors are on the devices that the graph says, which must be among those given; where it says nothing, on the
        first of them.
        """
        devices = [device] if isinstance(device, Device) else list(device or [HOST])
        self._graph = _Graph(graph_json.encode(), library, devices)
        self.set_recording(record_graphs())
        self._parameters: Mapping[str, object] = {}
        linked = [] if '"linked_params"' not in graph_json else list(self._linked_inputs())
        self._given: set[int] = set(linked)
        self._read_only: set[int] = set(linked)
        self._types: dict[int, DataType] = {}
        super().__init__("GraphExecutor", ("run", *_OPERATIONS))

    def _find(self, name: str) -> PackedFunc | None:
        if name in ("run", self.entry_name):
            return PackedFunc(_RUN, self._graph.address, name="run", keep_alive=self._graph)
        return convert_to_tvm_func(getattr(self, name)) if name in _OPERATIONS else None

    def keep(self, values: Mapping[str, object]) -> None:
        """Keep parameters alive as long as the executor: inputs read their memory."""
        self._parameters = values

    @property
    def address(self) -> int:
        """The graph's address in the C runtime, good as long as the executor lives."""
        return self._graph.address

    @property
    def arena_bytes(self) -> int:
        """The memory that all intermediate tensors share."""
        return int(LIBRARY.tilewright_graph_arena_bytes(self._graph.address))

    def run(self) -> None:
        """Runs every node once."""
        check(LIBRARY.tilewright_graph_run(self._graph.address))

    def set_recording(self, enabled: bool) -> None:
        """Sets whether runs on a GPU may be recorded as one launch, which happens from the second run on if all
        tensors are on one device. ``TILEWRIGHT_NO_CUDA_GRAPH`` turns it off for all."""
        LIBRARY.tilewright_graph_set_recording(self._graph.address, int(enabled and self._graph.is_compiled))

    def record(self) -> None:
        """Runs every node once and records the graph, so that later runs are one launch; an error if that is
        impossible."""
        if not self._graph.is_compiled:
            raise failure(
                "ValueError", "a graph that calls Python functions cannot be recorded; call compiled ones"
            )
        check(LIBRARY.tilewright_graph_record(self._graph.address))

    @property
    def is_recorded(self) -> bool:
        """True if a run is one launch now."""
        return bool(LIBRARY.tilewright_graph_is_recorded(self._graph.address))

    def run_until(self, node: int) -> None:
        """Runs the nodes up to this one, which is included."""
        check(LIBRARY.tilewright_graph_run_until(self._graph.address, _index(node)))

    def run_node(self, node: int) -> None:
        """Runs one node, on the values that its inputs have now."""
        check(LIBRARY.tilewright_graph_run_node(self._graph.address, _index(node)))

    def run_node_timed(self, node: int) -> float:
        """Runs one node as ``run_node`` does; the seconds that it took."""
        begin = time.perf_counter()
        self.run_node(node)
        return time.perf_counter() - begin

    def run_timed(self, repeat: int = 1) -> list[tuple[list[float], list[float]]]:
        """Runs the graph a number of times, with nothing but the clock between two kernels. Returns for every run when
        each node began and how long it took, in seconds; zero for nodes that call no function."""
        if repeat < 1:
            raise failure("ValueError", f"repeat must be at least 1, not {repeat}")
        count = LIBRARY.tilewright_graph_num_nodes(self._graph.address)
        begins, seconds = (ctypes.c_double * (repeat * count))(), (ctypes.c_double * (repeat * count))()
        self.run()  # the threads are awake and the caches warm when the clock starts
        done, piece = 0, 1
        while done < repeat:  # in pieces, between which Python handles signals such as Ctrl-C
            runs = min(piece, repeat - done)
            offset = done * count * ctypes.sizeof(ctypes.c_double)
            begin = time.perf_counter()
            check(
                LIBRARY.tilewright_graph_time_runs(
                    self._graph.address, runs, ctypes.byref(begins, offset), ctypes.byref(seconds, offset)
                )
            )
            done += runs
            if time.perf_counter() - begin < 0.1:
                piece *= 2
        starts = [run * count for run in range(repeat)]
        return [(begins[at : at + count], seconds[at : at + count]) for at in starts]

    def node_output(self, node: int, index: int = 0) -> NDArray:
        """An output of a node, sharing the graph's memory; nodes that run later may have overwritten it."""
        handle = c_void_p()
        position, place = _index(node), _index(index)
        check(
            LIBRARY.tilewright_graph_node_output(self._graph.address, position, place, ctypes.byref(handle))
        )
        return NDArray(handle.value or 0)

    def time_node(
        self, node: int, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0
    ) -> BenchmarkResult:
        """Measures one node on the values that its inputs have now."""
        require_counts(number, repeat, min_repeat_ms)
        seconds = (ctypes.c_double * repeat)()
        check(
            LIBRARY.tilewright_graph_time_node(
                self._graph.address, _index(node), number, repeat, min_repeat_ms, seconds
            )
        )
        return BenchmarkResult(list(seconds))

    def host_call(self, inputs: Sequence[str], outputs: Sequence[str]) -> HostCall | None:
        """The quickest way to call the model with values for these inputs; None where NumPy lacks a type. The outputs,
        all of them, get these names."""
        given = {name: (index, self._shared(index)) for name in inputs for index in [self._input(name)]}
        made = {name: self.get_output(index) for index, name in enumerate(outputs)}
        try:
            return HostCall(self._graph.address, self._graph, given, made)
        except TypeError:
            return None

    # ---- inputs ----

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return int(LIBRARY.tilewright_graph_num_inputs(self._graph.address))

    def get_input_index(self, name: str) -> int:
        """The position of an input; -1 for an unknown name."""
        return int(LIBRARY.tilewright_graph_input_index(self._graph.address, name.encode()))

    def input_names(self) -> list[str]:
        """The names of all inputs, in order."""
        return [
            LIBRARY.tilewright_graph_input_name(self._graph.address, index).decode()
            for index in range(self.get_num_inputs())
        ]

    def get_input_name(self, index: int) -> str:
        """The name of the input at a position."""
        names = self.input_names()
        if not 0 <= _index(index) < len(names):
            raise failure("IndexError", f"the graph has {len(names)} inputs, and none at position {index}")
        return names[index]

    def get_output_name(self, index: int) -> str:
        """The name of the output at a position."""
        names = self.output_names()
        if not 0 <= _index(index) < len(names):
            raise failure("IndexError", f"the graph has {len(names)} outputs, and none at position {index}")
        return names[index]

    def input_has_value(self, index: int) -> bool:
        """True if the input at a position was set."""
        return _index(index) in self._given

    def input_is_parameter(self, index: int) -> bool:
        """True if the input at a position is a parameter of the model."""
        return self.get_input_name(index) in self._parameters

    def _linked_inputs(self) -> Iterator[int]:
        """The parameters that are constants of the library."""
        for index in range(self.get_num_inputs()):
            if LIBRARY.tilewright_graph_input_is_linked(self._graph.address, index):
                yield index

    def input_device(self, index: int) -> Device:
        """Where an input is."""
        found = DLDevice()
        check(LIBRARY.tilewright_graph_input_device(self._graph.address, _index(index), ctypes.byref(found)))
        return Device(found.device_type, found.device_id)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the types of the inputs that are not parameters, each by name."""
        found = {
            name: self._shared(index)
            for index, name in enumerate(self.input_names())
            if name not in self._parameters
        }
        return {name: one.shape for name, one in found.items()}, {
            name: str(one.dtype) for name, one in found.items()
        }

    def _input(self, key: int | str) -> int:
        if not isinstance(key, str):
            return _index(key)
        index = self.get_input_index(key)
        if index < 0:
            raise failure(
                "ValueError", f"the graph has no input {key!r}; it has {', '.join(self.input_names())}"
            )
        return index

    def set_input(self, key: int | str, value: Any) -> None:
        """Copies a value into an input, by name or position.

        Numbers of NumPy and of Python become the input's type where that is the same kind (a float64 is rounded to
        float32, an integer must fit); arrays of other libraries must have it.
        """
        index = self._input(key)
        given = value if isinstance(value, NDArray) else matching(value, self._type_of(index))
        described = given._dltensor if isinstance(given, NDArray) else numpyasarray(given)
        check(LIBRARY.tilewright_graph_set_input(self._graph.address, index, ctypes.byref(described)))
        self._given.add(index)
        self._read_only.discard(index)

    def _type_of(self, index: int) -> DataType:
        found = self._types.get(index)
        if found is None:
            found = self._types[index] = self._shared(index).dtype
        return found

    def set_input_zero_copy(self, key: int | str, value: NDArray) -> None:
        """Makes an input read the array's own memory from now on; the graph keeps the array alive as long as it
        does. An output that takes the input's memory is written there."""
        if not isinstance(value, NDArray):
            raise failure(
                "TypeError", f"an input is used in place from an NDArray, not from a {type(value).__name__}"
            )
        index = self._input(key)
        if value.read_only and self.updates_input(index):
            raise failure(
                "ValueError",
                f"a run writes to the input {key!r}, and the array that it is given is read-only",
            )
        tensor = value.copyto(value.device).aligned() if value.borrowed else value
        check(LIBRARY.tilewright_graph_share_input(self._graph.address, index, tensor._handle))
        self._given.add(index)
        (self._read_only.add if tensor.read_only else self._read_only.discard)(index)

    def updates_input(self, key: int | str) -> bool:
        """True if an output takes the memory of the input, as ``in_place`` of ``relay.build`` asked for: after a run
        the input has the output's value, and need not be set again."""
        return bool(LIBRARY.tilewright_graph_updates_input(self._graph.address, self._input(key)))

    def get_input(self, key: int | str) -> NDArray:
        """An input, sharing the graph's memory."""
        index = self._input(key)
        shared = self._shared(index)
        self._given.add(index)  # what shares the memory may be written to
        return shared

    def _shared(self, index: int) -> NDArray:
        handle = c_void_p()
        check(LIBRARY.tilewright_graph_input(self._graph.address, index, ctypes.byref(handle)))
        return NDArray(handle.value or 0, index in self._read_only)

    def inputs_without_value(self) -> list[str]:
        """The inputs that were never set; none once parameters were loaded, because their names are not read."""
        return [name for index, name in enumerate(self.input_names()) if index not in self._given]

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Copies saved parameters into the inputs of their names."""
        content = bytes(params_bytes)
        check(LIBRARY.tilewright_graph_load_params(self._graph.address, content, len(content)))
        self._given.update(range(self.get_num_inputs()))

    def share_params(self, other: GraphExecutor, params_bytes: bytes | bytearray) -> None:
        """Uses another executor's values of the saved parameters, without a copy."""
        content = bytes(params_bytes)
        check(
            LIBRARY.tilewright_graph_share_params(
                self._graph.address, other._graph.address, content, len(content)
            )
        )
        self._given.update(range(self.get_num_inputs()))

    # ---- outputs ----

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return int(LIBRARY.tilewright_graph_num_outputs(self._graph.address))

    def get_output_index(self, name: str) -> int:
        """The position of an output; -1 for an unknown name."""
        return int(LIBRARY.tilewright_graph_output_index(self._graph.address, name.encode()))

    def output_names(self) -> list[str]:
        """The names of the outputs, in order: the model's, or output_0 and so on."""
        return [
            LIBRARY.tilewright_graph_output_name(self._graph.address, index).decode()
            for index in range(self.get_num_outputs())
        ]

    def _output(self, key: int | str) -> int:
        if not isinstance(key, str):
            return _index(key)
        index = self.get_output_index(key)
        if index < 0:
            raise failure(
                "ValueError", f"the graph has no output {key!r}; it has {', '.join(self.output_names())}"
            )
        return index

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output by position or name: copied into ``out``, or as a view that the next run overwrites."""
        handle = c_void_p()
        check(LIBRARY.tilewright_graph_output(self._graph.address, self._output(index), ctypes.byref(handle)))
        return _into(NDArray(handle.value or 0), out)

    def node_names(self) -> list[str]:
        """The names of all nodes, in the order in which they run."""
        count = LIBRARY.tilewright_graph_num_nodes(self._graph.address)
        return [
            LIBRARY.tilewright_graph_node_name(self._graph.address, node).decode() for node in range(count)
        ]

    def debug_get_output(self, node: int | str, out: NDArray | None = None, index: int = 0) -> NDArray:
        """An output of any node, after running the graph up to it; later nodes would overwrite it."""
        position = (
            operator.index(node)
            if not isinstance(node, str)
            else LIBRARY.tilewright_graph_node_index(self._graph.address, node.encode())
        )
        if position < 0:
            raise failure("ValueError", f"the graph has no node {node!r}")
        self.run_until(position)
        return _into(self.node_output(position, index), out)


def _index(value: Any) -> int:
    """A position as a C integer; an error for one that does not fit, which no graph can have."""
    position = operator.index(value)
    if not -(1 << 31) <= position < 1 << 31:
        raise failure("IndexError", f"the graph has no position {position}")
    return position


def _into(value: NDArray, out: NDArray | None) -> NDArray:
    return value if out is None else value.copyto(out)
