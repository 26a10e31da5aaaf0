"""Sessions as programs use them: a connection to a server, a server of one's own, or this process itself."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.rpc.connection import Connection, DirectConnection, Requester
from tilewright.rpc.failures import ChannelError
from tilewright.rpc.file_content import FileContent
from tilewright.rpc.folder import Folder
from tilewright.rpc.frames import Kind, text
from tilewright.rpc.handshake import is_loopback, open_channel
from tilewright.rpc.keys import find_key
from tilewright.rpc.peer import Peer
from tilewright.rpc.remote_array import RemoteDevice
from tilewright.rpc.remote_module import RemoteModule
from tilewright.rpc.service import Service
from tilewright.rpc.streams import PipeStream, SocketStream
from tilewright.runtime.device import device_number
from tilewright.runtime.failure import failure
from tilewright.runtime.packed_func import PackedFunc
from tilewright.support.errors import RPCError, RPCSessionTimeoutError

_CONNECT_SECONDS = 30.0
_indices = itertools.count()


class RPCSession:
    """A session on a server: its files, its functions, its devices.

    It ends with ``close``, at the end of a ``with`` block, or when nothing refers to it or to an object of it.
    """

    def __init__(self, sess: Requester) -> None:
        """Takes over a connection."""
        self._sess = Peer(sess, next(_indices))

    def __enter__(self) -> RPCSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session: the server frees its memory, its files and its device."""
        self._sess.requester.close()

    @property
    def _tbl_index(self) -> int:
        """The session's number in this process, which its devices carry."""
        return self._sess.index

    @property
    def server(self) -> str:
        """What the server says it is."""
        return str(getattr(self._sess.requester, "server", ""))

    # ---- functions and modules ----

    def system_lib(self) -> RemoteModule:
        """The functions that are linked into the server."""
        found: RemoteModule = self._sess.ask(Kind.SYSTEM_LIB)
        return found

    def get_function(self, name: str) -> PackedFunc:
        """A global function of the server."""
        return self._sess.global_function(name)

    def load_module(self, path: str) -> RemoteModule:
        """The module in a file that was uploaded."""
        found: RemoteModule = self._sess.ask(Kind.MODULE_LOAD, text(path))
        return found

    def download_linked_module(self, path: str) -> bytearray:
        """A module that was uploaded, linked to a shared library on the server's machine."""
        content: bytes = self.get_function("tvm.rpc.server.download_linked_module")(path)
        return bytearray(content)

    # ---- files ----

    def upload(self, data: str | os.PathLike[str] | bytes | bytearray, target: str | None = None) -> None:
        """Sends a file, or bytes, which become the file ``target`` of the session; a file's own name without one."""
        if isinstance(data, (bytes, bytearray)):
            if not target:
                raise failure(
                    "ValueError", "bytes need the name of a file to become: upload(data, target=...)"
                )
            self._sess.request(Kind.FILE_WRITE, text(target), [data] if data else [])
            return
        with open(data, "rb") as file:
            content = FileContent(file, os.fstat(file.fileno()).st_size)
            self._sess.request(Kind.FILE_WRITE, text(target or os.path.basename(data)), content)

    def download(self, path: str) -> bytearray:
        """The content of a file of the session."""
        return bytearray(self._sess.request(Kind.FILE_READ, text(path))[1])

    def remove(self, path: str) -> None:
        """Deletes a file of the session."""
        self._sess.request(Kind.FILE_REMOVE, text(path))

    def listdir(self, path: str = "") -> list[str]:
        """The names in a folder of the session; those of folders end with a slash."""
        return list(self._sess.ask(Kind.FILE_LIST, text(path.strip("/"))))

    # ---- devices ----

    def device(self, dev_type: int | str, dev_id: int = 0) -> RemoteDevice:
        """A device of the server, by its kind (a name, or DLPack's number) and index."""
        number = dev_type
        if isinstance(dev_type, str):
            found = device_number(dev_type.split()[0] if dev_type.strip() else "")
            if found is None:
                raise failure("ValueError", f"{dev_type!r} is not a kind of device")
            number = found
        return self._sess.device(int(number), dev_id)

    def cpu(self, dev_id: int = 0) -> RemoteDevice:
        """The server's CPU."""
        return self.device(1, dev_id)

    def cuda(self, dev_id: int = 0) -> RemoteDevice:
        """An NVIDIA GPU of the server."""
        return self.device(2, dev_id)

    def gpu(self, dev_id: int = 0) -> RemoteDevice:
        """Another name of ``cuda``."""
        return self.device(2, dev_id)

    def cl(self, dev_id: int = 0) -> RemoteDevice:
        """An OpenCL device of the server."""
        return self.device(4, dev_id)

    def vulkan(self, dev_id: int = 0) -> RemoteDevice:
        """A Vulkan device of the server."""
        return self.device(7, dev_id)

    def metal(self, dev_id: int = 0) -> RemoteDevice:
        """An Apple GPU of the server."""
        return self.device(8, dev_id)

    def rocm(self, dev_id: int = 0) -> RemoteDevice:
        """An AMD GPU of the server."""
        return self.device(10, dev_id)

    def ext_dev(self, dev_id: int = 0) -> RemoteDevice:
        """A device of an extension of the server."""
        return self.device(12, dev_id)

    def hexagon(self, dev_id: int = 0) -> RemoteDevice:
        """A Hexagon DSP of the server."""
        return self.device(16, dev_id)

    def webgpu(self, dev_id: int = 0) -> RemoteDevice:
        """A WebGPU device of the server."""
        return self.device(15, dev_id)


class LocalSession(RPCSession):
    """A session with this process: what works here works on a server, and the other way round."""

    def __init__(self) -> None:
        folder = Folder(Path(tempfile.mkdtemp(prefix="tilewright-rpc-")))
        super().__init__(DirectConnection(Service(folder)))


class _ProcessConnection(Connection):
    """A connection to a process of our own, which ends with it."""

    def __init__(self, stream: PipeStream, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        try:
            super().__init__(open_channel(stream, None))
        except BaseException:
            process.kill()
            process.wait()
            raise

    def _end(self, reason: str) -> None:
        super()._end(reason)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class PopenSession(RPCSession):
    """A session with a server that is started for it and spoken to over pipes."""

    def __init__(self, binary: str | os.PathLike[str] | bytes | Sequence[str | os.PathLike[str]]) -> None:
        """``binary`` is a program, its content as bytes, or a command such as ``["qemu-aarch64", "./server"]``.

        It is started with the numbers of two file descriptors as its last arguments: what it reads, and what it writes.
        """
        self._made: tempfile.TemporaryDirectory[str] | None = None
        if isinstance(binary, (bytes, bytearray)):
            self._made = tempfile.TemporaryDirectory(prefix="tilewright-rpc-")
            program = Path(self._made.name) / "server"
            program.write_bytes(binary)
            program.chmod(0o700)
            command: list[str] = [str(program)]
        elif isinstance(binary, (str, os.PathLike)):
            command = [os.fspath(binary)]
            if not os.path.isfile(command[0]):
                raise failure(
                    "ValueError", f"{command[0]} is not a file; PopenSession starts a server from one"
                )
            if not os.access(command[0], os.X_OK):
                raise failure("ValueError", f"{command[0]} is not executable; chmod +x makes it so")
        else:
            command = [os.fspath(part) for part in binary]
        super().__init__(_start(command))


def _start(command: list[str]) -> _ProcessConnection:
    there_reads, we_write = os.pipe()
    we_read, there_writes = os.pipe()
    try:
        process = subprocess.Popen(
            [*command, str(there_reads), str(there_writes)],
            stdin=subprocess.DEVNULL,
            pass_fds=(there_reads, there_writes),
        )
    except OSError as error:
        os.close(we_write)
        os.close(we_read)
        raise failure("OSError", f"cannot start {command[0]}: {error}") from error
    finally:
        os.close(there_reads)
        os.close(there_writes)
    return _ProcessConnection(PipeStream(we_read, we_write), process)


def connect_stream(
    url: str, port: int, key_file: str | os.PathLike[str] | None = None
) -> tuple[SocketStream, bytes | None]:
    """A connection to an address, and the key to use on it."""
    key = find_key(key_file)
    try:
        connection = socket.create_connection((url, int(port)), timeout=_CONNECT_SECONDS)
    except OSError as error:
        raise RPCError(f"cannot connect to {url}:{port}: {error}") from error
    if key is None and not is_loopback(connection.getpeername()[0]):
        connection.close()
        raise RPCError(
            f"{url} is another machine, which needs a key: `tilewright rpc keygen FILE` makes one; give both sides the "
            "file in TILEWRIGHT_RPC_KEY_FILE, or as key_file"
        )
    return SocketStream(connection), key


def connect(
    url: str,
    port: int,
    key: str = "",
    session_timeout: int = 0,
    session_constructor_args: list[Any] | None = None,
    *,
    key_file: str | os.PathLike[str] | None = None,
) -> RPCSession:
    """A session on the server at an address.

    ``key`` is the label of the server as in TVM, not a secret. The secret key is in ``key_file``, or where the
    environment says (``TILEWRIGHT_RPC_KEY_FILE``); servers on this machine may do without one. The server ends the
    session after ``session_timeout`` seconds, if that is not 0.
    """
    if session_constructor_args:
        raise failure(
            "ValueError",
            "session_constructor_args is not supported: connect to the last server of the chain directly",
        )
    stream, secret = connect_stream(url, port, key_file)
    try:
        connection = Connection(open_channel(stream, secret), key, int(session_timeout))
        stream.socket.settimeout(None)
    except ChannelError as error:
        stream.close()
        raise RPCError(f"{url}:{port}: {error.message}") from error
    except BaseException:
        stream.close()
        raise
    return RPCSession(connection)


__all__ = ["LocalSession", "PopenSession", "RPCSession", "RPCSessionTimeoutError", "connect"]
