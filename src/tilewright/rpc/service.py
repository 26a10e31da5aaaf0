"""What a server does for one session: the objects it has lent out, and the handler of each request."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tilewright.rpc import testing, values
from tilewright.rpc.array_bytes import Part, element_bytes
from tilewright.rpc.executors import create_executor, create_machine, node_names, run_timed, time_node
from tilewright.rpc.failures import ProtocolError, RemoteError
from tilewright.rpc.folder import Folder, names_of
from tilewright.rpc.frames import MOST_BULK, MOST_HEAD, Kind, Reader, text
from tilewright.rpc.streams import Buffer
from tilewright.rpc.values import DEVICE_LAYOUT, I32, U8, U32, U64, Decoder, Encoder
from tilewright.runtime.benchmark import time_evaluator
from tilewright.runtime.device import Device
from tilewright.runtime.device_table import Attribute, read_attribute
from tilewright.runtime.loading import load_module, system_lib
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray, array, empty
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.registry import get_global_func
from tilewright.support.errors import TilewrightError

MOST_OBJECTS = 1_000_000
_TIME_LAYOUT = struct.Struct("<iiIII")
_PIECE_BYTES = 1 << 24

Answer = tuple[bytes, Sequence[Buffer]]
"""The head and the bulk of an answer."""

_EMPTY: Answer = (b"", ())


class Bulk(Protocol):
    """The bulk of a request, which may still have to arrive."""

    size: int

    def read_into(self, target: memoryview) -> None:
        """The next bytes, as many as the buffer takes; no more than are left."""

    def read_to_file(self, descriptor: int) -> None:
        """Writes all that is left to a file; it is read also if the file cannot take it."""


def read_all(bulk: Bulk) -> bytes:
    """All of a bulk that was not read so far."""
    content = bytearray()
    while bulk.size:  # memory for what has arrived, not for what was announced
        piece = bytearray(min(bulk.size, _PIECE_BYTES))
        bulk.read_into(memoryview(piece))
        content += piece
    return bytes(content)


def describe_error(error: BaseException) -> bytes:
    """The head of an ERROR."""
    kind = error.kind if isinstance(error, RemoteError) else type(error).__name__
    message = error.message if isinstance(error, TilewrightError) else str(error)
    if isinstance(error, KeyError) and error.args:
        message = str(error.args[0])
    return text(kind[:200]) + text(
        message.encode(errors="replace")[: MOST_HEAD // 2].decode(errors="replace")
    )


class Service:
    """One session on the server's side."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._objects: dict[int, Any] = {}
        self._handles = itertools.count(1)
        functions: dict[str, Callable[..., Any]] = {
            "tvm.rpc.server.upload": self._upload,
            "tvm.rpc.server.download": self._download,
            "tvm.rpc.server.remove": self.folder.remove,
            "tvm.rpc.server.load_module": self._load,
            "tvm.rpc.server.listdir": lambda path="": ",".join(self.folder.names(path)),
            "tvm.rpc.server.workpath": lambda path: str(self.folder.root.joinpath(*names_of(path))),
            "tvm.rpc.server.ImportModule": lambda module, other: module.import_module(other),
            "tvm.rpc.server.download_linked_module": self._download_linked,
            "tvm.graph_executor.create": create_executor,
            "tilewright.graph.node_names": node_names,
            "tilewright.graph.run_timed": run_timed,
            "tilewright.graph.time_node": time_node,
            "tilewright.vm.create": create_machine,
            "testing.echo": lambda value, *ignored: value,
            "testing.test_raise_error_callback": testing.raise_error_callback,
        }
        self._own = {name: convert_to_tvm_func(function) for name, function in functions.items()}

    # ---- objects ----

    def _lend(self, value: Any) -> int:
        if len(self._objects) >= MOST_OBJECTS:
            raise MemoryError(f"the session holds {MOST_OBJECTS} objects, the most that are allowed")
        handle = next(self._handles)
        self._objects[handle] = value
        return handle

    def _object(self, handle: int, kind: type | None = None, what: str = "") -> Any:
        value = self._objects.get(handle)
        if value is None:
            raise ValueError(f"the session has no object with the handle {handle}")
        if kind is not None and not isinstance(value, kind):
            raise ValueError(f"the handle {handle} is a {type(value).__name__}, not {what}")
        return value

    def _array(self, handle: int) -> NDArray:
        found: NDArray = self._object(handle, NDArray, "an array")
        return found

    def _module(self, handle: int) -> Module:
        found: Module = self._object(handle, Module, "a module")
        return found

    def _function(self, handle: int) -> Callable[..., Any]:
        found = self._object(handle)
        if isinstance(found, Module):
            return found.entry_func
        if isinstance(found, NDArray):
            raise ValueError(f"the handle {handle} is an array, not a function")
        called: Callable[..., Any] = found
        return called

    def _refer(self, value: Any) -> bytes:
        """An object in an answer."""
        if isinstance(value, np.ndarray):
            value = array(value)
        if isinstance(value, NDArray):
            owned = value.copyto(value.device) if value.borrowed else value
            where = owned.device
            form = values.array_description(owned.shape, owned.dtype, where.device_type, where.device_id)
            return bytes([values.ARRAY]) + U64.pack(self._lend(owned)) + form
        if isinstance(value, Module):
            return bytes([values.MODULE]) + U64.pack(self._lend(value)) + text(value.type_key)
        if isinstance(value, PackedFunc):
            return bytes([values.FUNCTION]) + U64.pack(self._lend(value)) + text(value.name)
        if isinstance(value, Device):
            return bytes([values.DEVICE]) + DEVICE_LAYOUT.pack(value.device_type, value.device_id)
        if callable(value):
            return self._refer(convert_to_tvm_func(value))
        raise TypeError(f"a {type(value).__name__} cannot be sent to the client")

    def _resolve(self, tag: int, reader: Reader) -> Any:
        """An object in a request."""
        if tag != values.REFERENCE:
            raise ProtocolError(f"a value with the tag {tag} in a request")
        return self._object(reader.number(U64))

    def _answer(self, value: Any) -> Answer:
        encoder = Encoder(self._refer)
        encoder.add(value)
        return encoder.head(), encoder.bulk

    def close(self) -> None:
        """Drops every object and deletes the folder."""
        self._objects.clear()
        self._own.clear()
        self.folder.delete()

    # ---- requests ----

    def handle(self, kind: int, head: bytes, bulk: Bulk) -> Answer | None:
        """The answer to a request of a type in ``HANDLED``, or None if it has none. Errors are the request's."""
        return _HANDLERS[kind](self, Reader(head), bulk)

    def _get_function(self, reader: Reader, bulk: Bulk) -> Answer:
        name = reader.text()
        reader.end()
        return self._answer(self._own.get(name) or get_global_func(name, allow_missing=True))

    def _call(self, reader: Reader, bulk: Bulk) -> Answer:
        function = self._function(reader.number(U64))
        decoder = Decoder(reader, read_all(bulk), self._resolve)
        arguments = decoder.values()
        decoder.end()
        return self._answer(function(*arguments))

    def _free(self, reader: Reader, bulk: Bulk) -> None:
        count = reader.number(U32)
        handles = [reader.number(U64) for _ in range(min(count, MOST_HEAD))]
        for handle in handles:
            self._objects.pop(handle, None)

    def _array_new(self, reader: Reader, bulk: Bulk) -> Answer:
        shape, dtype, device = values.read_array_description(reader)
        reader.end()
        _require_device(device)
        size = element_bytes(dtype)
        for extent in shape:
            if extent < 0:
                raise ValueError(f"an extent of {extent} in the shape of an array")
            size *= extent
        if size > MOST_BULK:
            raise MemoryError(f"an array of {size} bytes; at most {MOST_BULK} are allowed")
        return self._answer(empty(shape, dtype, device))

    def _array_write(self, reader: Reader, bulk: Bulk) -> Answer:
        target, first = self._array(reader.number(U64)), reader.number(U64)
        reader.end()
        part = Part(target, first, bulk.size, write=True)
        bulk.read_into(part.view)
        part.store()
        return _EMPTY

    def _array_read(self, reader: Reader, bulk: Bulk) -> Answer:
        source, first, count = self._array(reader.number(U64)), reader.number(U64), reader.number(U64)
        reader.end()
        return b"", [Part(source, first, count, write=False).view]

    def _array_copy(self, reader: Reader, bulk: Bulk) -> Answer:
        source, target = self._array(reader.number(U64)), self._array(reader.number(U64))
        reader.end()
        source.copyto(target)
        return _EMPTY

    def _file_write(self, reader: Reader, bulk: Bulk) -> Answer:
        path = reader.text()
        reader.end()
        with self.folder.writing(path, bulk.size) as file:
            bulk.read_to_file(file.fileno())
        return _EMPTY

    def _file_read(self, reader: Reader, bulk: Bulk) -> Answer:
        path = reader.text()
        reader.end()
        return b"", [self._download(path)]

    def _file_remove(self, reader: Reader, bulk: Bulk) -> Answer:
        path = reader.text()
        reader.end()
        self.folder.remove(path)
        return _EMPTY

    def _file_list(self, reader: Reader, bulk: Bulk) -> Answer:
        path = reader.text()
        reader.end()
        return self._answer(self.folder.names(path))

    def _module_load(self, reader: Reader, bulk: Bulk) -> Answer:
        path = reader.text()
        reader.end()
        return self._answer(self._load(path))

    def _module_function(self, reader: Reader, bulk: Bulk) -> Answer:
        module, name, imports = self._module(reader.number(U64)), reader.text(), reader.number(U8)
        reader.end()
        if not module.implements_function(name, query_imports=bool(imports)):
            return self._answer(None)
        return self._answer(module.get_function(name, query_imports=bool(imports)))

    def _module_import(self, reader: Reader, bulk: Bulk) -> Answer:
        module, other = self._module(reader.number(U64)), self._module(reader.number(U64))
        reader.end()
        module.import_module(other)
        return _EMPTY

    def _time(self, reader: Reader, bulk: Bulk) -> Answer:
        function = self._function(reader.number(U64))
        device_type, device_id, number, repeat, min_repeat_ms = reader.take(_TIME_LAYOUT)
        prepare = reader.text()
        decoder = Decoder(reader, read_all(bulk), self._resolve)
        arguments = decoder.values()
        decoder.end()
        device = Device(device_type, device_id)
        _require_device(device)
        packed = convert_to_tvm_func(function)
        evaluate = time_evaluator(packed, number, repeat, min_repeat_ms, prepare, device)
        seconds = evaluate(*arguments).results
        return self._answer(struct.pack(f"<{len(seconds)}d", *seconds))

    def _device_attribute(self, reader: Reader, bulk: Bulk) -> Answer:
        device, number = Device(*reader.take(DEVICE_LAYOUT)), reader.number(I32)
        reader.end()
        try:
            attribute = Attribute(number)
        except ValueError:
            return self._answer(None)
        if attribute is not Attribute.EXISTS and not device.has_driver:
            return self._answer(None)
        return self._answer(read_attribute(device.described, attribute))

    def _device_sync(self, reader: Reader, bulk: Bulk) -> Answer:
        device = Device(*reader.take(DEVICE_LAYOUT))
        reader.end()
        _require_device(device)
        device.sync()
        return _EMPTY

    def _system_lib(self, reader: Reader, bulk: Bulk) -> Answer:
        reader.end()
        return self._answer(system_lib())

    def _ping(self, reader: Reader, bulk: Bulk) -> Answer:
        reader.end()
        return _EMPTY

    # ---- functions by name ----

    def _upload(self, path: str, content: bytes) -> None:
        with self.folder.writing(path, len(content)) as file:
            _write_all(file, memoryview(content))

    def _download(self, path: str) -> bytes:
        with self.folder.reading(path) as (file, size):
            return file.read(size)

    def _load(self, path: str) -> Module:
        return load_module(self.folder.file(path))

    def _download_linked(self, path: str) -> bytes:
        """A module of the folder, linked on this machine."""
        if Path(path).suffix in (".so", ".dylib", ".dll"):
            return self._download(path)
        linked = self.folder.root / ".linked.so"
        try:
            self._load(path).export_library(str(linked))
            return linked.read_bytes()
        finally:
            linked.unlink(missing_ok=True)


def _write_all(file: Any, content: memoryview) -> None:
    while content:
        content = content[file.write(content) :]


def _require_device(device: Device) -> None:
    if not device.exist:
        raise ValueError(f"this machine has no {device}")


_HANDLERS: dict[int, Callable[[Service, Reader, Bulk], Answer | None]] = {
    Kind.GET_FUNCTION: Service._get_function,
    Kind.CALL: Service._call,
    Kind.FREE: Service._free,
    Kind.ARRAY_NEW: Service._array_new,
    Kind.ARRAY_WRITE: Service._array_write,
    Kind.ARRAY_READ: Service._array_read,
    Kind.ARRAY_COPY: Service._array_copy,
    Kind.FILE_WRITE: Service._file_write,
    Kind.FILE_READ: Service._file_read,
    Kind.FILE_REMOVE: Service._file_remove,
    Kind.FILE_LIST: Service._file_list,
    Kind.MODULE_LOAD: Service._module_load,
    Kind.MODULE_FUNCTION: Service._module_function,
    Kind.MODULE_IMPORT: Service._module_import,
    Kind.TIME: Service._time,
    Kind.DEVICE_ATTRIBUTE: Service._device_attribute,
    Kind.DEVICE_SYNC: Service._device_sync,
    Kind.SYSTEM_LIB: Service._system_lib,
    Kind.PING: Service._ping,
}

HANDLED = frozenset(_HANDLERS)
NO_REPLY = frozenset([int(Kind.FREE)])
