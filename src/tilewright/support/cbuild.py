"""Finding and using a C compiler: the machine's ``cc``, otherwise the ``ziglang`` wheel.

It builds three things: the runtime library, when the package runs from a source tree; the runtime's objects that go
into an exported artefact; and the artefact itself. Compiling and running in-process needs none of this. What is built
from the runtime's sources is cached under a hash of sources, flags and target.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tilewright.support.errors import RuntimeFailure
from tilewright.support.options import cache_dir
from tilewright.support.triple import Triple, host_triple, is_host

SOURCES = Path(__file__).resolve().parent.parent / "runtime" / "csrc"
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden")


class CompilerError(RuntimeFailure, OSError):
    """No C compiler was found, or it refused its input; carries its output."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler and how to call it."""

    command: tuple[str, ...]

    def run(self, arguments: Sequence[str | Path]) -> None:
        """Runs it; ``CompilerError`` with what it printed, should it fail."""
        command = [*self.command, *(str(argument) for argument in arguments)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            raise CompilerError(f"the C compiler failed: {' '.join(command)}\n{done.stdout.strip()}")


def zig_command() -> tuple[str, ...] | None:
    """How to call ``zig cc``, where the ``ziglang`` wheel or a ``zig`` program is installed."""
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    program = shutil.which("zig")
    return (program, "cc") if program else None


def find_compiler(triple: str = "") -> Compiler:
    """A compiler for the target: ``cc`` for this machine, a cross ``gcc`` or ``clang`` (the Android NDK's) named after
    the triple, else ``zig cc``, if it has the system's libraries."""
    if is_host(triple):
        program = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
        if program:
            return Compiler((program,))
    else:
        parsed = Triple.parse(triple)
        start = f"{parsed.machine}-linux-{parsed.environment or 'gnu'}"
        names = [f"{start}-gcc", f"{start}-clang"] if parsed.system == "linux" else []
        program = next((found for name in names if (found := shutil.which(name))), None)
        if program:
            return Compiler((program,))
        if not parsed.zig_has_libraries:
            kit = (
                "Xcode, on a Mac"
                if parsed.system == "ios"
                else f"the Android NDK ({start}-clang on the PATH)"
            )
            raise CompilerError(f"no C compiler for {triple} was found: its libraries come with {kit}.")
    zig = zig_command()
    if zig is not None:
        # Unlike other compilers, zig generates code for this machine's CPU unless told otherwise.
        target = () if is_host(triple) else ("-target", Triple.parse(triple).zig_target)
        return Compiler((*zig, *target, "-mcpu=baseline"))
    wanted = f" for {triple}" if triple else ""
    raise CompilerError(
        f"no C compiler{wanted} was found: neither cc on the PATH nor the ziglang package. "
        "Install a C compiler, or `pip install ziglang` (the extra tilewright[cross])."
    )


def library_name(system: str) -> str:
    """The file name of the runtime library on a system."""
    return {"windows": "tilewright_runtime.dll", "macos": "libtilewright_runtime.dylib"}.get(
        system, "libtilewright_runtime.so"
    )


def runtime_sources() -> list[Path]:
    """The C files of the runtime, in a fixed order."""
    return sorted(SOURCES.glob("*.c"))


def link_flags(triple: str = "") -> tuple[str, ...]:
    """The linker flags for a shared library for the target."""
    system = (Triple.parse(triple) if triple else host_triple()).system
    if system == "linux":
        return ("-shared", "-pthread", "-ldl", "-lm")
    return ("-shared",)


def build_runtime(output: Path, compiler: Compiler | None = None) -> None:
    """Builds the runtime library for this machine; the file appears whole or not at all."""
    chosen = compiler if compiler is not None else find_compiler()
    write_beside(output, lambda path: chosen.run([*FLAGS, *runtime_sources(), "-o", path, *link_flags()]))


@cache
def _build_folder(kept: Path, name: str) -> Path:
    """Where something is built from the runtime's sources: in the folder ``kept`` or, where that cannot be written or
    is another user's, in one that ends with the process."""
    folder = kept / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_foreign(kept) and (os.access(folder, os.W_OK) or any(folder.iterdir())):
            return folder
    except OSError:
        pass
    made, owner = tempfile.mkdtemp(prefix="tilewright-runtime-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # and not in a process that was forked from it
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return Path(made)


def _is_foreign(folder: Path) -> bool:
    """True if another user made the folder: what lies in it is code that would be run."""
    return hasattr(os, "getuid") and folder.stat().st_uid not in (os.getuid(), 0)


def runtime_library() -> Path:
    """The runtime library: the installed one, else one built from the sources into the cache."""
    name = library_name(host_triple().system)
    installed = SOURCES.parent / name
    if installed.exists():
        return installed
    output = _build_folder(cache_dir() / "runtime", _key("library", "")) / name
    if not output.exists():
        build_runtime(output)
    return output


def libinfo() -> dict[str, str]:
    """How this installation was built and what it can use, under TVM's names for the options."""
    llvm = importlib.util.find_spec("llvmlite") is not None
    return {
        "USE_LLVM": "ON" if llvm else "OFF",
        "LLVM_VERSION": ".".join(str(part) for part in _llvm_version()) if llvm else "NOT-FOUND",
        "USE_CUDA": "ON",
        "USE_OPENCL": "OFF",
        "USE_METAL": "OFF",
        "USE_VULKAN": "OFF",
        "USE_RPC": "ON",
        "USE_GRAPH_EXECUTOR": "ON",
        "RUNTIME_LIBRARY": str(runtime_library()),
        "C_COMPILER": " ".join(find_compiler().command) if has_compiler() else "NOT-FOUND",
    }


def _llvm_version() -> tuple[int, ...]:
    import llvmlite.binding

    return tuple(llvmlite.binding.llvm_version_info)


def has_compiler(triple: str = "") -> bool:
    """True if there is a C compiler for the target, which links shared libraries too."""
    try:
        find_compiler(triple)
    except CompilerError:
        return False
    return True


def copy_runtime(folder: Path, triple: str = "") -> list[Path]:
    """Writes what a C or C++ program needs to load artefacts: the headers, and the runtime as a shared library."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for header in (SOURCES / "tilewright.h", SOURCES / "tilewright.hpp"):
        written.append(folder / header.name)
        write_bytes(written[-1], header.read_bytes())
    if is_host(triple):
        library = runtime_library()
        written.append(folder / library.name)
        write_bytes(written[-1], library.read_bytes())
    else:
        written.append(folder / library_name(Triple.parse(triple).system))
        compiler, flags = find_compiler(triple), link_flags(triple)
        write_beside(written[-1], lambda path: compiler.run([*FLAGS, *runtime_sources(), "-o", path, *flags]))
    return written


def embedded_objects(triple: str = "") -> list[Path]:
    """The runtime as objects to be linked into an artefact, every name hidden."""
    folder = _build_folder(cache_dir() / "runtime", _key("embedded", triple))
    objects = [folder / f"{source.stem}.o" for source in runtime_sources()]
    compiler = None
    for source, path in zip(runtime_sources(), objects, strict=True):
        if path.exists():
            continue
        compiler = compiler if compiler is not None else find_compiler(triple)
        write_beside(path, _compile_step(compiler, source))
    return objects


SERVER_FLAGS = (
    *("-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections"),
    *(
        "-DTILEWRIGHT_STATIC",
        "-DTILEWRIGHT_OWN_LOADER",
        "-DTILEWRIGHT_NO_CUDA",
        "-fno-unwind-tables",
        "-fno-asynchronous-unwind-tables",
    ),
)


def server_sources() -> list[Path]:
    """The C files of the RPC server, with those of the runtime that it uses."""
    unused = ("cuda", "session", "capsule")
    used = [path for path in runtime_sources() if not path.name.startswith(unused)]
    return [*sorted((SOURCES / "rpc").glob("*.c")), *used]


def build_rpc_server(output: Path, triple: str = "") -> None:
    """Builds the RPC server as one static program, for a Linux machine.

    It is linked with musl, whose functions fit into a small program: with a cross compiler for it, or else with zig.
    """
    parsed = Triple.parse(triple) if triple else host_triple()
    if parsed.system != "linux":
        raise CompilerError(
            f"the RPC server in C is for Linux, not for {triple}: use the one in Python there"
        )
    environment = "musleabihf" if parsed.machine.startswith(("arm", "thumb")) else "musl"
    target = Triple(parsed.machine, "linux", environment)
    program = shutil.which(f"{target.machine}-linux-{environment}-gcc")
    zig = zig_command()
    if program is None and zig is None:
        raise CompilerError(
            f"no compiler that links static programs for {target.llvm} was found: `pip install ziglang` (the extra "
            "tilewright[cross]) has one for all of them"
        )
    is_arm = environment == "musleabihf"
    # The server itself is Thumb code, which is a fourth smaller; what it loads may be either.
    zig_target = replace(target, machine="thumb").zig_target if is_arm else target.zig_target
    cpu = "generic+v7a+vfp3d16" if is_arm else "baseline"
    command = (program,) if program else (*(zig or ()), "-target", zig_target, f"-mcpu={cpu}")
    compiler = Compiler(command)
    flags: list[str | Path] = [*SERVER_FLAGS, *server_sources(), "-static", "-Wl,--gc-sections", "-s"]
    flags += ["-pthread", "-lm"]
    write_beside(output, lambda path: compiler.run([*flags, "-o", path]))
    output.chmod(0o755)


def link_shared(output: Path, objects: Sequence[Path], triple: str = "", options: Sequence[str] = ()) -> None:
    """Links objects and the runtime into one self-contained shared library."""
    compiler = find_compiler(triple)
    parts = [*objects, *embedded_objects(triple)]
    write_beside(output, lambda path: compiler.run([*parts, "-o", path, *link_flags(triple), *options]))


def write_beside(output: Path, write: Callable[[Path], None]) -> None:
    """Has a file written under another name in its folder, then renames it: never half a file under the final name."""
    output.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{output.name}.", suffix=output.suffix, dir=output.parent)
    os.close(handle)
    path = Path(temporary)
    try:
        write(path)
        executable = path.stat().st_mode & 0o111  # what a linker, or the caller, has made of it
        path.chmod((0o666 | executable) & ~_umask())
        os.replace(path, output)
    finally:
        path.unlink(missing_ok=True)


def write_bytes(output: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""

    def write(path: Path) -> None:
        path.write_bytes(content)

    write_beside(output, write)


@cache
def _umask() -> int:
    """The process's file creation mask; reading it means setting it, so it is read once."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _compile_step(compiler: Compiler, source: Path) -> Callable[[Path], None]:
    return lambda path: compiler.run([*FLAGS, "-DTILEWRIGHT_EMBEDDED", "-c", source, "-o", path])


@cache
def _key(purpose: str, triple: str) -> str:
    """A name for what is built: changes with the sources, the flags and the target.

    Not with the compiler: what one compiler has built stays of use where there is none.
    """
    system = Triple.parse(triple).llvm if triple else ""
    digest = hashlib.sha256(repr((purpose, system, FLAGS, host_triple())).encode())
    for path in sorted(path for path in SOURCES.iterdir() if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]
