"""Kernels compared with the limits of the machine, which are measured again where they cannot be right.

Other programs only ever take speed away. So limits that were measured while the machine was busy are too low, and a
kernel that is faster than them shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tilewright.codegen.llvm.limits import MachineLimits, machine_limits
from tilewright.driver.profile.gpu_limits import gpu_limits
from tilewright.driver.profile.kernels import KernelProfile
from tilewright.runtime.device import Device
from tilewright.runtime.threads import num_threads

MOST_MEASUREMENTS = 6
"""How often the limits are measured before a kernel is left above them."""


Limits = Callable[[int, Iterable[str]], MachineLimits]
"""Measures the limits for a number of threads, and the peaks of element types."""


def limits_of(device: Device) -> Limits:
    """What measures the limits of a device."""
    return machine_limits if device.kind == "cpu" else lambda threads, dtypes: gpu_limits(device)


def compared_with_limits(
    measure: Callable[[], KernelProfile], limits: Limits = machine_limits
) -> KernelProfile:
    """The kernels that ``measure`` gives with the limits of the machine, measured before and after, and again as long
    as a kernel is above them."""
    threads = num_threads()
    best = limits(threads, ())
    profile = measure()
    types = profile.arithmetic_types
    for count in range(2, MOST_MEASUREMENTS + 1):
        best = best.best_of(limits(threads, types))
        profile = replace(profile, limits=best, limit_measurements=count)
        if not profile.above_limit:
            break
    return profile
