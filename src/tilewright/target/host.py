"""The machine that this process runs on: CPU, features, caches, usable cores."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

from tilewright.support.errors import TargetError

_CPU_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_CPU_INFO = Path("/proc/cpuinfo")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")
_OLD_CGROUP = Path("/sys/fs/cgroup/cpu")
_SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def host_llvm() -> tuple[str, str, str]:
    """The triple, CPU name and feature string (``+avx2,-amx-tile,...``) of this machine, from LLVM."""
    try:
        import llvmlite.binding as llvm
    except ImportError as missing:
        raise TargetError("the target 'llvm' needs the llvmlite package: pip install llvmlite") from missing
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def host_features() -> frozenset[str]:
    """The features of this machine's CPU by LLVM's names; from the kernel where LLVM is not installed."""
    try:
        _, _, features = host_llvm()
    except TargetError:
        return _features_from_kernel(_read(_CPU_INFO))
    return frozenset(feature[1:] for feature in features.split(",") if feature.startswith("+"))


def _features_from_kernel(cpu_info: str) -> frozenset[str]:
    """Linux's flags under LLVM's names: ``sse4_1`` is ``sse4.1``, ``avx512_vnni`` is ``avx512vnni``."""
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpu_info, re.MULTILINE)
    renamed = {"sse4_1": "sse4.1", "sse4_2": "sse4.2", "avx_vnni": "avxvnni", "pni": "sse3", "bmi1": "bmi"}
    renamed |= {
        "asimd": "neon",
        "asimddp": "dotprod",
        "asimdhp": "fullfp16",
        "asimdfhm": "fp16fml",
        "amx_tile": "amx-tile",
    }
    renamed |= {"amx_int8": "amx-int8", "amx_bf16": "amx-bf16", "abm": "lzcnt"}
    flags = match.group(1).split() if match else []
    return frozenset(renamed.get(flag, flag.replace("avx512_", "avx512")) for flag in flags)


def host_family_triple() -> str:
    """A triple for this machine that does not need LLVM."""
    machine = platform.machine().lower()
    architecture = {"amd64": "x86_64", "arm64": "aarch64", "": "x86_64"}.get(machine, machine)
    return f"{architecture}-unknown-{platform.system().lower() or 'unknown'}"


@cache
def host_processor() -> str:
    """What the system calls this machine's processor; empty where it does not say."""
    match = re.search(r"^model name\s*:(.*)$", _read(_CPU_INFO), re.MULTILINE)
    return match.group(1).strip() if match else platform.processor()


@cache
def host_cores() -> int:
    """Cores that this process may use: its affinity, and the CPU time its container is given."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return allowed if quota is None else max(1, min(allowed, int(quota + 0.5)))


def _cgroup_quota() -> float | None:
    """The cores' worth of time that the container may use, or None if there is no limit."""
    words = _read(_CGROUP_LIMIT).split()
    if not words:
        words = [
            _read(_OLD_CGROUP / "cpu.cfs_quota_us").strip(),
            _read(_OLD_CGROUP / "cpu.cfs_period_us").strip(),
        ]
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
        return int(words[0]) / int(words[1])
    return None


@cache
def host_caches() -> dict[str, int]:
    """Bytes of ``l1d``, ``l2`` and ``l3`` and the cache ``line``, as far as the system tells."""
    found = _caches_from_sysfs(_CPU_FOLDER)
    for name, variable in (
        ("l1d", "SC_LEVEL1_DCACHE_SIZE"),
        ("l2", "SC_LEVEL2_CACHE_SIZE"),
        ("l3", "SC_LEVEL3_CACHE_SIZE"),
        ("line", "SC_LEVEL1_DCACHE_LINESIZE"),
    ):
        # Some kernels and C libraries answer 0, or refuse, where they do not know.
        if name not in found and variable in getattr(os, "sysconf_names", {}):
            try:
                value = os.sysconf(variable)
            except (OSError, ValueError):
                continue
            if value > 0:
                found[name] = value
    return found


def _caches_from_sysfs(folder: Path) -> dict[str, int]:
    """The caches that Linux describes in ``folder``, one ``index<n>`` folder each."""
    found: dict[str, int] = {}
    for index in sorted(folder.glob("index*")) if folder.is_dir() else []:
        level, kind = _read(index / "level").strip(), _read(index / "type").strip()
        match = re.fullmatch(r"(\d+)([KMG]?)", _read(index / "size").strip())
        name = {("1", "Data"): "l1d", ("2", "Unified"): "l2", ("3", "Unified"): "l3"}.get((level, kind))
        if name is not None and match is not None and int(match.group(1)) > 0:
            found[name] = int(match.group(1)) * _SIZE_UNITS[match.group(2)]
            line = _read(index / "coherency_line_size").strip()
            if line.isdigit() and int(line) > 0:
                found.setdefault("line", int(line))
    return found


def _read(path: Path) -> str:
    """The text of a file, empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
