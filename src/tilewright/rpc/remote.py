"""Devices, arrays, functions and modules of a session, as this process sees them.

They stand wherever their local kind may stand: ``nd.array(x, session.cpu())`` makes an array there, a function of the
session takes it, and ``numpy`` brings it back. The server keeps an object as long as this process has it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.rpc import values
from tilewright.rpc.connection import Requester
from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.frames import Kind, Reader, text
from tilewright.rpc.values import DEVICE_LAYOUT, U8, U32, U64, Decoder, Encoder
from tilewright.runtime.benchmark import BenchmarkResult, require_counts
from tilewright.runtime.device import RPC_OFFSET, Device, ForeignDevice
from tilewright.runtime.device_table import Attribute
from tilewright.runtime.failure import failure
from tilewright.runtime.library import DLTensor
from tilewright.runtime.module import ENTRY_NAME, Module
from tilewright.runtime.ndarray import NDArray, empty, numpy_dtype
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.support.dtype import DataType


class Peer:
    """What the objects of one session share: its connection, and its number among the sessions of this process."""

    def __init__(self, requester: Requester, index: int) -> None:
        self.requester = requester
        self.index = index
        self.free = requester.free
        self.request = requester.request

    def __repr__(self) -> str:
        return f"remote[{self.index}]"

    def device(self, device_type: int, device_id: int) -> RemoteDevice:
        """A device of the server's machine."""
        return RemoteDevice(self, device_type, device_id)

    # ---- values ----

    def _refer(self, value: Any) -> bytes:
        """An argument that is an object."""
        if isinstance(value, (RemoteArray, RemoteFunction, RemoteModule)):
            if value.peer is not self:
                raise failure(
                    "ValueError", f"an argument is an object of {value.peer}, the function one of {self}"
                )
            return values.reference(value.remote_handle)
        if isinstance(value, RemoteDevice):
            if value.peer is not self:
                raise failure(
                    "ValueError", f"an argument is a device of {value.peer}, the function is of {self}"
                )
            return bytes([values.DEVICE]) + DEVICE_LAYOUT.pack(value.remote_type, value.device_id)
        if isinstance(value, Device):
            raise failure(
                "TypeError",
                f"the remote function was given {value} of this machine; use the session's, as in session.cpu()",
            )
        if isinstance(value, (NDArray, np.ndarray)) or hasattr(value, "__dlpack__"):
            raise failure(
                "TypeError",
                "the remote function was given an array of this machine; copy it first: nd.array(x, session.cpu())",
            )
        if callable(value):
            raise failure(
                "TypeError",
                "a function of this process cannot be passed to a remote one; the server does not call its clients",
            )
        raise failure("TypeError", f"a {type(value).__name__} cannot be passed to a remote function")

    def _resolve(self, tag: int, reader: Reader) -> Any:
        """A result that is an object."""
        if tag == values.ARRAY:
            handle = reader.number(U64)
            shape, dtype, device = values.read_array_description(reader)
            return RemoteArray(self, handle, shape, dtype, self.device(device.device_type, device.device_id))
        if tag == values.FUNCTION:
            return RemoteFunction(self, reader.number(U64), reader.text())
        if tag == values.MODULE:
            handle, type_key = reader.number(U64), reader.text()
            kind = RemoteGraphExecutor if type_key == "GraphExecutor" else RemoteModule
            return kind(self, handle, type_key)
        raise ProtocolError(f"a value with the tag {tag} in an answer")

    def ask(self, kind: int, head: bytes = b"", bulk: Sequence[Any] = ()) -> Any:
        """A request whose answer is one value."""
        head, content = self.request(kind, head, bulk)
        return self._decode(head, content)

    def _decode(self, head: bytes, bulk: bytes) -> Any:
        decoder = Decoder(Reader(head), bulk, self._resolve)
        value = decoder.value()
        decoder.end()
        if type(value) is Device:
            return self.device(value.device_type, value.device_id)
        return value

    def call(self, kind: int, start: bytes, args: tuple[Any, ...]) -> Any:
        """A request with arguments."""
        encoder = Encoder(self._refer)
        for value in args:
            encoder.add(value)
        head, bulk = self.request(kind, start + U32.pack(len(args)) + encoder.head(), encoder.bulk)
        return self._decode(head, bulk)


class RemoteDevice(ForeignDevice):
    """A device of a session. Its type is that of the device there and the number of the session, as in TVM."""

    __slots__ = ("peer", "remote_type")

    def __init__(self, peer: Peer, device_type: int, device_id: int = 0) -> None:
        super().__init__(device_type + RPC_OFFSET * (peer.index + 1), device_id)
        self.peer = peer
        self.remote_type = device_type

    def _place(self) -> bytes:
        return DEVICE_LAYOUT.pack(self.remote_type, self.device_id)

    @property
    def kind(self) -> str:
        """The name of the kind of device."""
        return Device(self.remote_type, 0).kind

    @property
    def exist(self) -> bool:
        """True if the server has the device."""
        return self._known(Attribute.EXISTS) == 1

    @property
    def has_driver(self) -> bool:
        """True if the server can use the device."""
        return self.exist

    @property
    def host_readable(self) -> bool:
        """False: it is in another process."""
        return False

    def _known(self, attribute: Attribute) -> int | str | None:
        found = self.peer.ask(Kind.DEVICE_ATTRIBUTE, self._place() + values.I32.pack(attribute))
        return found if isinstance(found, (int, str)) else None

    def sync(self, stream: Any = None) -> None:
        """Waits until the device has finished all its work."""
        if stream is not None:
            raise failure("ValueError", f"streams of {self} cannot be named from another machine")
        self.peer.request(Kind.DEVICE_SYNC, self._place())

    def new_array(self, shape: Sequence[int], dtype: DataType) -> NDArray:
        """An uninitialized array there."""
        form = values.array_description(tuple(shape), dtype, self.remote_type, self.device_id)
        made: NDArray = self.peer.ask(Kind.ARRAY_NEW, form)
        return made


class RemoteArray(NDArray):
    """An array on a remote device. Reading and writing its elements copies them over the connection."""

    __slots__ = ("_device", "peer", "remote_handle")
    is_foreign = True

    def __init__(
        self, peer: Peer, handle: int, shape: tuple[int, ...], dtype: DataType, device: RemoteDevice
    ) -> None:
        self.peer = peer
        self.remote_handle = handle
        self._shape = tuple(shape)
        self._type = dtype
        self._device = device
        self.borrowed = False

    def __del__(self) -> None:
        peer = getattr(self, "peer", None)
        if peer is not None:
            peer.free(self.remote_handle)

    def _not_here(self) -> Exception:
        return failure(
            "TypeError",
            f"the array is on {self._device}: pass it to functions of its session, or copy it here with numpy()",
        )

    @property
    def _tag(self) -> int:  # type: ignore[override]
        raise self._not_here()

    @property
    def _handle(self) -> int:  # type: ignore[override]
        raise self._not_here()

    @property
    def _dltensor(self) -> DLTensor:
        raise self._not_here()

    @property
    def handle(self) -> int:
        raise self._not_here()

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of a compact array."""
        steps = [1]
        for extent in reversed(self.shape[1:]):
            steps.append(steps[-1] * extent)
        return tuple(reversed(steps))[-self.ndim :] if self.ndim else ()

    @property
    def device(self) -> Device:
        """The device of the session."""
        return self._device

    @property
    def read_only(self) -> bool:
        """False as far as this side knows; the server refuses to write what must not be written."""
        return False

    def _require_writeable(self) -> None:
        pass

    def same_as(self, other: object) -> bool:
        """True if both are the same handle."""
        return (
            isinstance(other, RemoteArray)
            and self.peer is other.peer
            and self.remote_handle == other.remote_handle
        )

    def _empty(self) -> npt.NDArray[Any]:
        dtype = self.dtype
        return np.empty(self.shape + ((dtype.lanes,) if dtype.lanes > 1 else ()), numpy_dtype(dtype))

    def numpy(self) -> npt.NDArray[Any]:
        """A NumPy array with a copy of the elements."""
        made = self._empty()
        place = U64.pack(self.remote_handle) + U64.pack(0) + U64.pack(made.nbytes)
        into = memoryview(made.reshape(-1).view(np.uint8)).cast("B") if made.size else memoryview(bytearray())
        self.peer.request(Kind.ARRAY_READ, place, into=into)
        return made

    def _memory(self) -> npt.NDArray[Any] | None:
        return None

    def aligned(self) -> NDArray:
        """The array itself: the server's kernels use it where it is."""
        return self

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copies elements in, from any array."""
        if isinstance(source_array, RemoteArray) and source_array.peer is self.peer:
            handles = U64.pack(source_array.remote_handle) + U64.pack(self.remote_handle)
            self.peer.request(Kind.ARRAY_COPY, handles)
            return self
        wanted = self._empty()
        source = source_array.numpy() if isinstance(source_array, NDArray) else np.asarray(source_array)
        if source.shape != wanted.shape:
            raise failure(
                "ValueError",
                f"cannot copy an array of shape {source.shape} into one of shape {wanted.shape}",
            )
        content = np.ascontiguousarray(source, wanted.dtype).reshape(-1).view(np.uint8)
        place = U64.pack(self.remote_handle) + U64.pack(0)
        self.peer.request(Kind.ARRAY_WRITE, place, [memoryview(content)] if content.size else [])
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copies elements out, into an array or to a new one on a device."""
        if isinstance(target, Device):
            target = empty(self.shape, self.dtype, target, mem_scope)
        elif not isinstance(target, NDArray):
            raise failure("TypeError", f"copyto needs an NDArray or a Device, not {type(target).__name__}")
        source = self if isinstance(target, RemoteArray) and target.peer is self.peer else self.numpy()
        return target.copyfrom(source)

    def __setitem__(self, index: object, value: Any) -> None:
        self._require_whole(index)
        self.copyfrom(np.full_like(self._empty(), value) if np.isscalar(value) else value)

    def to_dlpack(self) -> object:
        """An error: the memory is elsewhere."""
        raise self._not_here()

    def __dlpack__(self, **options: Any) -> object:  # type: ignore[override]
        raise BufferError(str(self._not_here()))

    def __dlpack_device__(self) -> tuple[int, int]:
        raise BufferError(str(self._not_here()))

    def __repr__(self) -> str:
        return f"<tilewright.nd.NDArray shape={self.shape}, dtype={self.dtype}, {self.device}>"


class RemoteFunction(PackedFunc):
    """A function of a session: called here, it runs there."""

    __slots__ = ("_local", "_start", "peer", "remote_handle")

    def __init__(self, peer: Peer, handle: int, name: str = "") -> None:
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


class RemoteModule(Module):
    """A module of a session."""

    def __init__(self, peer: Peer, handle: int, type_key: str) -> None:
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
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures ``func_name`` there: what it reports has no time of the connection in it."""
        function = self.get_function(func_name, query_imports=True)
        return time_remote(self.peer, function, dev, number, repeat, min_repeat_ms, f_preproc)

    def _why_not_runnable(self) -> str | None:
        return None

    def export_library(self, file_name: str, *args: Any, **kwargs: Any) -> None:
        """An error: the module's code is on the other machine."""
        raise failure(
            "ValueError",
            f"a module of {self.peer} cannot be exported from here; session.download brings its file",
        )

    def __repr__(self) -> str:
        return f"RemoteModule({self.type_key}, {self.peer})"


def time_remote(
    peer: Peer,
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


class RemoteGraphExecutor(RemoteModule):
    """A graph executor of a session, with the methods of the local one."""

    def run(self) -> None:
        """Runs every node once."""
        self.get_function("run")()

    def set_input(self, key: int | str, value: Any) -> None:
        """Copies a value into an input, by name or position."""
        if isinstance(value, RemoteArray) and value.peer is self.peer:
            self.get_function("set_input")(key, value)
            return
        target = self.get_input(key)
        source = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
        if source.dtype != numpy_dtype(target.dtype) and not np.can_cast(
            source.dtype, numpy_dtype(target.dtype), "same_kind"
        ):
            raise failure("TypeError", f"the input {key!r} is {target.dtype}, and the value {source.dtype}")
        # Not into the input's own memory, which executors of one model may share.
        copied = empty(target.shape, target.dtype, target.device).copyfrom(source)
        self.get_function("set_input")(key, copied)

    def set_input_zero_copy(self, key: int | str, value: NDArray) -> None:
        """Makes an input read an array of the session in place."""
        self.get_function("set_input_zero_copy")(key, value)

    def get_input(self, key: int | str) -> NDArray:
        """An input, sharing the executor's memory."""
        found: NDArray = self.get_function("get_input")(key)
        return found

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output by position or name: copied into ``out``, or as a view that the next run overwrites."""
        found: NDArray = self.get_function("get_output")(index)
        return found if out is None else found.copyto(out)

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return int(self.get_function("get_num_inputs")())

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return int(self.get_function("get_num_outputs")())

    def get_input_index(self, name: str) -> int:
        """The position of an input; -1 for an unknown name."""
        return int(self.get_function("get_input_index")(name))

    def get_output_index(self, name: str) -> int:
        """The position of an output; -1 for an unknown name."""
        return int(self.get_function("get_output_index")(name))

    def input_names(self) -> list[str]:
        """The names of all inputs, in order."""
        name_of = self.get_function("get_input_name")
        return [name_of(index) for index in range(self.get_num_inputs())]

    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        name_of = self.get_function("get_output_name")
        return [name_of(index) for index in range(self.get_num_outputs())]

    def inputs_without_value(self) -> list[str]:
        """The inputs that were never set."""
        has_value = self.get_function("input_has_value")
        return [name for index, name in enumerate(self.input_names()) if not has_value(index)]

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the types of the inputs that are not parameters, each by name."""
        found = {name: self.get_input(name) for name in self.inputs_without_value()}
        return {name: one.shape for name, one in found.items()}, {
            name: str(one.dtype) for name, one in found.items()
        }

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Copies saved parameters into the inputs of their names."""
        self.get_function("load_params")(bytes(params_bytes))

    def share_params(self, other: RemoteGraphExecutor, params_bytes: bytes | bytearray) -> None:
        """Uses another executor's values of the saved parameters, without a copy."""
        self.get_function("share_params")(other, bytes(params_bytes))

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """An output of any node, after running the graph up to it."""
        found: NDArray = self.get_function("debug_get_output")(node)
        return found if out is None else found.copyto(out)


__all__ = [
    "ENTRY_NAME",
    "Peer",
    "RemoteArray",
    "RemoteDevice",
    "RemoteFunction",
    "RemoteGraphExecutor",
    "RemoteModule",
    "time_remote",
]
