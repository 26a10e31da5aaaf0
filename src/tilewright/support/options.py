"""Every environment variable that Tilewright reads, in one place, typed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def flag(name: str) -> bool:
    """True if the variable is set to something other than an empty string, 0, false, no or off."""
    return os.environ.get(name, "").strip().lower() not in ("", "0", "false", "no", "off")


CHECK: bool = flag("TILEWRIGHT_CHECK")
"""Verify the IR between passes and freeze nodes. Read once, at import: it decides how node classes are made."""


def cache_dir() -> Path:
    """``TILEWRIGHT_CACHE_DIR``, else the user's cache folder; without a home, a folder of this user's among the
    temporary files. It need not be there, and it may be one that cannot be written."""
    explicit = os.environ.get("TILEWRIGHT_CACHE_DIR")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "tilewright"
    try:
        return Path.home() / ".cache" / "tilewright"
    except RuntimeError:  # neither HOME nor an entry of this user
        user = os.getuid() if hasattr(os, "getuid") else "user"
        return Path(tempfile.gettempdir()) / f"tilewright-{user}"


def num_threads() -> int | None:
    """``TILEWRIGHT_NUM_THREADS``, where it is a positive number."""
    value = os.environ.get("TILEWRIGHT_NUM_THREADS", "")
    return int(value) if value.isdigit() and int(value) > 0 else None


def targets_for_tests() -> tuple[str, ...]:
    """``TVM_TEST_TARGETS``: targets separated by semicolons, on which parametrised tests run; empty where not set."""
    return tuple(name.strip() for name in os.environ.get("TVM_TEST_TARGETS", "").split(";") if name.strip())


def compile_processes() -> int:
    """``TILEWRIGHT_COMPILE_PROCESSES``, else as many as there are cores this process may use."""
    value = os.environ.get("TILEWRIGHT_COMPILE_PROCESSES", "")
    if value.isdigit() and int(value) > 0:
        return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_compile_cache() -> bool:
    """False where ``TILEWRIGHT_NO_CACHE`` asks that compiled kernels be neither kept nor taken from the cache."""
    return not flag("TILEWRIGHT_NO_CACHE")


def cache_limit() -> int:
    """``TILEWRIGHT_CACHE_LIMIT``: bytes of compiled code to keep on disk, 2 GiB unless set."""
    value = os.environ.get("TILEWRIGHT_CACHE_LIMIT", "")
    return int(value) if value.isdigit() else 2 << 30


def unpack_limit() -> int | None:
    """``TILEWRIGHT_UNPACK_LIMIT``: bytes that an archive may unpack to; None where it is not set."""
    value = os.environ.get("TILEWRIGHT_UNPACK_LIMIT", "")
    return int(value) if value.isdigit() else None


def tophub_folder() -> str:
    """``TOPHUB_LOCATION``: a folder with files of tuning records that are applied by default; empty where not set."""
    return os.environ.get("TOPHUB_LOCATION", "")


def compile_seconds() -> float:
    """``TILEWRIGHT_COMPILE_SECONDS``: how long a worker may take for one unit, ten minutes unless set."""
    value = os.environ.get("TILEWRIGHT_COMPILE_SECONDS", "")
    try:
        seconds = float(value)
    except ValueError:
        return 600.0
    return seconds if seconds > 0 else 600.0


def dump_folder() -> Path | None:
    """``TILEWRIGHT_DUMP``: where every stage of every compiled unit is written; None where it is not set."""
    value = os.environ.get("TILEWRIGHT_DUMP", "")
    return Path(value) if value else None


def cuda_driver() -> Path | None:
    """``TILEWRIGHT_CUDA_DRIVER``: the library to use as the CUDA driver, which the C runtime reads when it first needs
    one; None where it is not set, for the system's."""
    value = os.environ.get("TILEWRIGHT_CUDA_DRIVER", "")
    return Path(value) if value else None


def record_graphs() -> bool:
    """False where ``TILEWRIGHT_NO_CUDA_GRAPH`` asks that graph executors launch kernel by kernel."""
    return not flag("TILEWRIGHT_NO_CUDA_GRAPH")


def guard_pages() -> str | None:
    """``TILEWRIGHT_GUARD_PAGES``: which side of every tensor touches a page that must not be accessed, ``"end"`` (also
    for ``1``) or ``"start"``; None where it is not set. For tests; the C runtime reads it (``csrc/guard.c``)."""
    if not flag("TILEWRIGHT_GUARD_PAGES"):
        return None
    return "start" if os.environ["TILEWRIGHT_GUARD_PAGES"].strip().lower() == "start" else "end"


def own_variables() -> dict[str, str]:
    """The variables that this module reads, as they are set now: what a worker process has to be told."""
    return {name: value for name, value in os.environ.items() if name.startswith(("TILEWRIGHT_", "TVM_"))}


def tracker_address() -> tuple[str | None, int | None]:
    """``TVM_TRACKER_HOST`` and ``TVM_TRACKER_PORT``: where the tracker of remote devices is, where nobody says."""
    port = os.environ.get("TVM_TRACKER_PORT", "")
    return os.environ.get("TVM_TRACKER_HOST") or None, int(port) if port.isdigit() else None


def rpc_key_file() -> Path | None:
    """``TILEWRIGHT_RPC_KEY_FILE``: the file with the pre-shared key of remote machines."""
    value = os.environ.get("TILEWRIGHT_RPC_KEY_FILE")
    return Path(value) if value else None


def rpc_key() -> str | None:
    """``TILEWRIGHT_RPC_KEY``: the pre-shared key of remote machines itself."""
    return os.environ.get("TILEWRIGHT_RPC_KEY") or None
