"""Measuring as on a CPU with fewer features than this one: ``--isa avx2``.

The program restarts itself with a library (cpuid_avx2.c) that hides AVX-512 and AMX from it and from every contender.
The contenders need no options: they dispatch on CPUID and see a CPU with AVX2, as they would on a machine that has no
more. Caches and clock are still this machine's.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

LIBRARY = "TILEWRIGHT_BENCH_HIDES"
"""The variable that names the library where one is used; the library takes LD_PRELOAD away once it is loaded."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """The option of every bench."""
    parser.add_argument(
        "--isa",
        choices=("native", "avx2"),
        default="native",
        help="the features of the processor that all contenders see: all of them, or none beyond AVX2",
    )


def start_again(isa: str) -> None:
    """Return only in a process that sees no more CPU features than these."""
    if isa == "native":
        return
    from tilewright.target.cpu import describe_cpu

    if "avx512f" not in describe_cpu("llvm").features:
        return
    if LIBRARY in os.environ:
        raise SystemExit(
            "AVX-512 cannot be hidden here: Linux on a processor with CPUID faulting is needed for that"
        )
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilewright-bench"
    folder.mkdir(parents=True, exist_ok=True)
    source = HERE / f"cpuid_{isa}.c"
    library = folder / f"cpuid_{isa}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.so"
    if not library.exists():
        draft = library.with_suffix(f".{os.getpid()}")
        compiler = [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC"]
        subprocess.run([*compiler, "-o", str(draft), str(source)], check=True)
        draft.replace(library)
    os.environ.update({LIBRARY: str(library), "ATEN_CPU_CAPABILITY": "avx2"})
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | isa_environment())


def isa_environment() -> dict[str, str]:
    """The environment of a contender's process, so that it sees the same CPU features."""
    return {"LD_PRELOAD": os.environ[LIBRARY]} if LIBRARY in os.environ else {}


def is_limited() -> bool:
    """True if features of the CPU are hidden from this process."""
    return LIBRARY in os.environ


def beside(path: Path, isa: str) -> Path:
    """Where the results go: latency.md, latency_avx2.md."""
    return path if isa == "native" else path.with_stem(f"{path.stem}_{isa}")
