"""The limits of the machine, as the package measures them: see ``tilewright.codegen.llvm.limits``."""

from __future__ import annotations

from tilewright.codegen.llvm.limits import (
    Bandwidth,
    MachineLimits,
    bandwidth,
    machine_limits,
    peak_flops,
)

__all__ = ["bandwidth", "limits_from", "machine_limits", "peak_flops"]


def limits_from(known: str | None, threads: int) -> MachineLimits:
    """The limits that are known as "GFLOP/s,GB/s", the second of memory; measured where None are."""
    if known is None:
        return machine_limits(threads)
    peak, memory = (1e9 * float(part) for part in known.split(","))
    return MachineLimits("", threads, peak, (Bandwidth("memory", None, memory),))
