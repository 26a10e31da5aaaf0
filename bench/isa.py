"""Measuring as on a CPU with fewer features than this one: ``--isa avx2``.

The program restarts itself with a library that hides AVX-512 and AMX from it and from every contender. The contenders
need no options: they dispatch on CPUID and see a CPU with AVX2, as they would on a machine that has no more. ``avx2``
also hides the later instructions on 256 bits, AVX-VNNI above all: int8 products are those of a processor without dot
products of bytes. ``avx_vnni`` leaves AVX-VNNI visible. Caches and clock are still this machine's.

A processor that can fault on CPUID does so (cpuid_fault.c). On others, AMD's among them, the CPUID instructions of
programs and libraries are replaced as these are loaded (cpuid_patch.c), which needs glibc and objdump.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

LIMIT = "TILEWRIGHT_BENCH_LIMIT"
"""The variable that keeps how a process is limited, as ISA:NAME:PATH: the variable NAME loads the library PATH, which
takes NAME away once it is loaded."""

OPTIONS = {"avx2": (), "avx_vnni": ("-DKEEP_AVX_VNNI",)}
"""What the compiler is told for each limit."""

BEYOND = ("avx512", "amx-", "avxvnniint", "avxifma", "avxneconvert")
"""How LLVM's names begin of the features that every limit hides."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """The option of every bench."""
    parser.add_argument(
        "--isa",
        choices=("native", *OPTIONS),
        default="native",
        help="the features of the processor that all contenders see: all, none beyond AVX2, or AVX2 and AVX-VNNI",
    )


def start_again(isa: str) -> None:
    """Return only in a process that sees no more CPU features than these."""
    if isa == "native":
        return
    from tilewright.target.cpu import describe_cpu

    features = describe_cpu("llvm").features
    if not any(name.startswith(BEYOND) or (name, isa) == ("avxvnni", "avx2") for name in features):
        return
    if limit() != "native":
        raise SystemExit("AVX-512 cannot be hidden here: that needs Linux, and CPUID faulting or glibc")
    os.environ.update({LIMIT: f"{isa}:{limiting_library(isa)}", "ATEN_CPU_CAPABILITY": "avx2"})
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | isa_environment())


def limiting_library(isa: str) -> str:
    """The variable that loads the library of a limit, and the library's path; it is compiled where it is missing."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilewright-bench"
    folder.mkdir(parents=True, exist_ok=True)
    sources, options = [HERE / "cpuid_fault.c"], list(OPTIONS[isa])
    variable = "LD_PRELOAD"
    if not faults_on_cpuid():
        if shutil.which("objdump") is None:
            raise SystemExit("AVX-512 cannot be hidden here: objdump (binutils) is needed for that")
        finder = HERE / "cpuid_sites.py"
        places = folder / f"cpuid_sites-{digest(finder.read_bytes())}"
        places.mkdir(exist_ok=True)
        texts = {"PYTHON": sys.executable, "FINDER": finder, "FOLDER": places}
        options += [f'-D{name}="{text}"' for name, text in texts.items()]
        sources, variable = [HERE / "cpuid_patch.c"], "LD_AUDIT"
    parts = [*(path.read_bytes() for path in [*sources, HERE / "cpuid_limits.h"]), repr(options).encode()]
    library = folder / f"cpuid_{isa}-{digest(*parts)}.so"
    if not library.exists():
        draft = library.with_suffix(f".{os.getpid()}")
        compiler = [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", *options]
        subprocess.run([*compiler, "-o", str(draft), *map(str, sources)], check=True)
        draft.replace(library)
    return f"{variable}:{library}"


def digest(*parts: bytes) -> str:
    """A name for contents."""
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def faults_on_cpuid() -> bool:
    """True on Linux where the processor can fault on CPUID."""
    information = Path("/proc/cpuinfo")
    return information.exists() and "cpuid_fault" in information.read_text().split()


def isa_environment() -> dict[str, str]:
    """The environment of a contender's process, so that it sees the same CPU features.

    It is for the process itself: a program that starts it, as nice does, would take the variable away.
    """
    if limit() == "native":
        return {}
    _, variable, library = os.environ[LIMIT].split(":", 2)
    return {variable: library}


def limit() -> str:
    """The features that this process sees, as ``--isa`` names them."""
    return os.environ.get(LIMIT, "native").partition(":")[0]


def beside(path: Path, isa: str) -> Path:
    """Where the results go: latency.md, latency_avx2.md."""
    return path if isa == "native" else path.with_stem(f"{path.stem}_{isa}")
