"""Modules from files, and from the program itself."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import mmap
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.runtime.artefact import Archive, check_checksum, unpack_imports
from tilewright.runtime.device import Device, device_number
from tilewright.runtime.device_table import host_readable
from tilewright.runtime.elf import check_elf
from tilewright.runtime.failure import failure
from tilewright.runtime.features import require_features
from tilewright.runtime.library import LIBRARY, runtime_symbols
from tilewright.runtime.module import Module, SourceModule
from tilewright.runtime.registry import get_global_func
from tilewright.support.cbuild import find_compiler, is_host, link_shared

_LIBRARY_SUFFIXES = (".so", ".dll", ".dylib")
_SOURCE_KINDS = ("cuda", "opencl", "metal", "webgpu", "vulkan", "rocm")

_loaders: dict[str, Callable[[str, Any], Module]] = dict.fromkeys(_SOURCE_KINDS, SourceModule.load_from_bytes)
_read_in_place: set[str] = set()

LOADER_ENTRY_POINTS = "tilewright.module_loaders"
"""The group of a package's entry points that say how its kinds of module are loaded: ``load(type_key, content)``."""


def register_module_loader(type_key: str, load: Callable[[str, Any], Module], in_place: bool = False) -> None:
    """Registers how a kind of imported module is restored from its bytes; ``load(type_key, content)`` returns it.

    With ``in_place`` the content is a view of the library's own memory, valid during the call: weights need not be in
    memory twice to be read.
    """
    _loaders[type_key] = load
    (_read_in_place.add if in_place else _read_in_place.discard)(type_key)


def _loader_of(type_key: str) -> Callable[[str, Any], Module] | None:
    """How a kind of module is restored: as registered here, as the global function ``runtime.module.loadbinary_<kind>``
    does, or as an installed package says under ``tilewright.module_loaders``."""
    found = _loaders.get(type_key)
    if found is not None:
        return found
    function = get_global_func(f"runtime.module.loadbinary_{type_key}", allow_missing=True)
    if function is not None:
        return lambda _, content: function(content)
    from importlib import metadata  # takes 20 ms, and is rarely needed

    for point in metadata.entry_points(group=LOADER_ENTRY_POINTS, name=type_key):
        register_module_loader(type_key, point.load())
    return _loaders.get(type_key)


def _open(path: Path) -> ctypes.CDLL:
    """The library at a path; one that was linked without the runtime uses that of this process."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        if "tilewright_" not in str(error):
            raise failure("OSError", f"cannot load {path}: {error}") from error
    ctypes.CDLL(LIBRARY._name, mode=ctypes.RTLD_GLOBAL)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise failure("OSError", f"cannot load {path}: {error}") from error


class LibraryModule(Module):
    """A shared library in this process. An artefact with its own runtime is bound to that of this process."""

    def __init__(self, path: Path) -> None:
        super().__init__("library")
        self.path = path
        self._library = _open(path)
        if self._address_of("__tilewright_bind_host"):
            self._library["__tilewright_bind_host"](ctypes.c_void_p(LIBRARY.tilewright_host()))
        self.describe(str(path))
        block = _stored_imports(self)
        _attach_imports(self, block, str(path))
        _leave_in_file(block)

    def _address_of(self, symbol: str) -> int:
        try:
            return ctypes.cast(self._library[symbol], ctypes.c_void_p).value or 0
        except AttributeError:
            return 0

    def _owner(self) -> object:
        return self._library


class ObjectModule(Module):
    """Object files linked in memory by LLVM: no linker is needed on this machine. The kind is that of a shared library,
    which does the same."""

    _names = itertools.count()

    def __init__(self, objects: Sequence[bytes], what: str) -> None:
        super().__init__("library")
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._name = f"object{next(self._names)}"
        self._lock = threading.Lock()
        self._jit = llvm.create_lljit_compiler(use_jit_link=True)
        builder = llvm.JITLibraryBuilder().add_current_process()
        for name, address in runtime_symbols().items():
            builder.import_symbol(name, address)
        for code in objects:
            builder.add_object_img(code)
        try:
            # LLVM unloads the code with the first tracker that is dropped: there is one for each symbol, kept here.
            self._trackers = {"": builder.link(self._jit, self._name)}
        except RuntimeError as error:
            raise failure("ValueError", f"cannot link {what}: {error}") from error
        self._objects = list(objects)

    def _address_of(self, symbol: str) -> int:
        with self._lock:
            tracker = self._trackers.get(symbol)
            if tracker is None:
                try:
                    tracker = self._jit.lookup(self._name, symbol)
                except RuntimeError:  # LLVM's error for an unknown symbol
                    return 0
                self._trackers[symbol] = tracker
        return int(tracker[symbol])

    def _owner(self) -> object:
        return (self._jit, self._trackers)

    def object_code(self) -> bytes | None:
        return self._objects[0] if len(self._objects) == 1 else None


class SystemLibrary(Module):
    """The functions that are linked into the program itself."""

    def __init__(self) -> None:
        super().__init__("system_lib")

    def _address_of(self, symbol: str) -> int:
        return int(LIBRARY.tilewright_system_symbol(symbol.encode()) or 0)


def _stored_imports(module: Module) -> memoryview:
    """The block of imported modules, where it lies in the library."""
    start, size = module._address_of("__tilewright_imports"), module._address_of("__tilewright_imports_size")
    length = ctypes.c_uint64.from_address(size).value if start and size else 0
    return memoryview((ctypes.c_char * length).from_address(start)).cast("B") if length else memoryview(b"")


def _leave_in_file(block: memoryview) -> None:
    """Release the memory of a block that was read from a mapped file and is not written to; reading it again
    loads it from the file. Where the system has no such call, the pages stay until memory is short."""
    process = ctypes.CDLL(None) if os.name == "posix" else None
    if not block or process is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = ctypes.addressof(ctypes.c_char.from_buffer(block))
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + len(block)) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:
        process.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED)


def _attach_imports(root: Module, block: bytes | memoryview, what: str) -> None:
    made: list[Module] = []
    for stored in unpack_imports(block, what) if block else ():
        load = _loader_of(stored.type_key)
        if load is None:
            raise failure(
                "ValueError",
                f"{what} imports a {stored.type_key} module, which this process cannot load: import the package that "
                "registers it (tvm.runtime.register_module_loader)",
            )
        in_place = stored.type_key in _read_in_place
        module = load(stored.type_key, stored.content if in_place else bytes(stored.content))
        if not isinstance(module, Module):
            raise failure(
                "TypeError",
                f"{what} imports a {stored.type_key} module, and its loader returned a {type(module).__name__}",
            )
        made.append(module)
        (made[stored.parent] if stored.parent >= 0 else root).import_module(module)


def _load_objects(objects: Sequence[bytes], what: str) -> Module:
    """Links objects in memory with LLVM; without it, with the machine's linker."""
    for code in objects:
        check_elf(code, what)
    if importlib.util.find_spec("llvmlite") is not None:
        return ObjectModule(objects, what)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"lib{index}.o" for index in range(len(objects))]
        for path, code in zip(paths, objects, strict=True):
            path.write_bytes(code)
        library = Path(folder) / "linked.so"
        link_shared(library, paths)
        return LibraryModule(library)


def _compile_sources(sources: Sequence[bytes]) -> list[bytes]:
    """Objects from C source."""
    objects = []
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "model.c", Path(folder) / "model.o"
        for content in sources:
            source.write_bytes(content)
            find_compiler().run(["-std=c11", "-O2", "-fPIC", "-c", source, "-o", output])
            objects.append(output.read_bytes())
    return objects


def _compile_ir(content: bytes, kind: str, what: str) -> bytes:
    """The object of LLVM's intermediate code, as text (``.ll``) or as bitcode (``.bc``), for this machine."""
    if importlib.util.find_spec("llvmlite") is None:
        raise failure("ValueError", f"loading {what} needs LLVM; install it with: pip install llvmlite")
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        module = llvm.parse_assembly(content.decode()) if kind == ".ll" else llvm.parse_bitcode(content)
        module.verify()
    except (RuntimeError, UnicodeDecodeError) as error:
        raise failure("ValueError", f"cannot load {what}: {error}") from error
    triple = module.triple or llvm.get_default_triple()
    if not is_host(triple):
        raise failure("ValueError", f"{what} is code for {triple}, not for this machine")
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        reloc="pic",
        codemodel="default",
    )
    return bytes(machine.emit_object(module))


def _load_archive(path: Path) -> Module:
    archive = Archive.read(path)
    if not is_host(archive.triple):
        raise failure("ValueError", f"{path} is code for {archive.triple}, not for this machine")
    require_features(archive.features, str(path))
    module = _load_objects(archive.objects or _compile_sources(archive.sources), str(path))
    module.describe(str(path))
    if archive.functions:
        module._function_names = tuple(archive.functions)
    module.target = archive.target or module.target
    _attach_imports(module, archive.imports, str(path))
    return module


def _check_library(file: Path) -> None:
    """An error for a library that is damaged; its content is checked in place, and not kept."""
    with file.open("rb") as handle:
        empty = os.fstat(handle.fileno()).st_size == 0
        content = memoryview(b"" if empty else mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
    check_checksum(content, str(file))
    check_elf(content, str(file))


def load_module(path: str | Path, fmt: str = "") -> Module:
    """A module from a shared library, an object file, LLVM's intermediate code or a tar archive of objects, by ``fmt``
    or the file's suffix."""
    file = Path(path)
    if not file.is_file():
        raise failure("ValueError", f"cannot load the module {file}: there is no such file")
    kind = f".{fmt.lstrip('.')}" if fmt else file.suffix
    if kind in _LIBRARY_SUFFIXES:
        _check_library(file)
        return LibraryModule(file.resolve())
    if kind in (".o", ".obj", ".ll", ".bc"):
        content = file.read_bytes()
        if kind in (".ll", ".bc"):
            content = _compile_ir(content, kind, str(file))
        module = _load_objects([content], str(file))
        module.describe(str(file))
        return module
    if kind == ".tar":
        return _load_archive(file)
    raise failure(
        "ValueError",
        f"cannot load {file}: its kind is {kind!r}, and .so, .dll, .dylib, .o, .ll, .bc and .tar are known",
    )


def system_lib() -> Module:
    """The functions that are linked into the program itself, as on machines without dynamic loading."""
    return SystemLibrary()


def enabled(target: str) -> bool:
    """True if this process can run code for a kind of target or device."""
    kind = target.split()[0] if target.strip() else ""
    if kind in ("llvm",):
        return importlib.util.find_spec("llvmlite") is not None
    if kind in ("cpu", "c", "system_lib", "rpc"):
        return True
    number = device_number(kind)
    return number is not None and not host_readable(number) and Device(number, 0).exist
