"""The kernels as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.driver.profile.kernels import Kernel, KernelProfile

COLUMNS = [
    "kernel",
    "time",
    "share",
    "calls",
    "GFLOP/s",
    "GB/s",
    "of limit",
    "bound by",
    "nodes of the model",
]

_SHOWN_NODES = 3
_LONGEST_NAME = 48


def time_text(seconds: float) -> str:
    """Seconds in the unit that suits them: ``3.42 ms``."""
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return (
                f"{seconds * scale:.3g} {unit}" if seconds * scale < 100 else f"{seconds * scale:.0f} {unit}"
            )
    return f"{seconds:.3g} s"


def rate_text(value: float | None) -> str:
    """A rate with three digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def share_text(value: float | None) -> str:
    """A part of a whole."""
    return "-" if value is None else f"{value:.1%}"


def nodes_text(names: list[str]) -> str:
    """The first few names."""
    more = len(names) - _SHOWN_NODES
    return ", ".join(names[:_SHOWN_NODES]) + (f" and {more} more" if more > 0 else "")


def _row(kernel: Kernel, complete: bool) -> list[str]:
    name = kernel.short_name
    if not complete and len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 10]}…{name[-9:]}"
    return [
        name,
        time_text(kernel.seconds),
        share_text(kernel.share),
        str(kernel.calls),
        rate_text(kernel.gflops_per_second),
        rate_text(kernel.gigabytes_per_second),
        share_text(kernel.of_limit),
        kernel.bound_by or "-",
        ", ".join(kernel.model_nodes) if complete else nodes_text(kernel.model_nodes),
    ]


def kernel_rows(profile: KernelProfile, complete: bool = True) -> list[list[str]]:
    """A row for each kernel, the slowest first, and the sum of all. Unless it is to be ``complete``, long names are
    shortened, and of many nodes a few are named."""
    rows = [_row(kernel, complete) for kernel in profile.kernels()]
    total = profile.total_seconds
    flops = profile.operations
    moved = sum(step.size_bytes for step in profile.steps)
    rows.append(
        [
            "all kernels",
            time_text(total),
            share_text(1.0 if total else 0.0),
            str(len(profile.steps)),
            rate_text(flops / total / 1e9 if flops is not None and total else None),
            rate_text(moved / total / 1e9 if total else None),
            share_text(profile.of_limit),
            "",
            "",
        ]
    )
    return rows


def summary_lines(profile: KernelProfile) -> list[str]:
    """The lines below the table: a whole run, and the limits that the kernels are compared with."""
    lines = [
        f"A run takes {time_text(profile.run_seconds)}, the median of {profile.runs}; "
        f"the kernels in it {time_text(profile.total_seconds)}."
    ]
    defined, done = profile.flops, profile.operations
    if defined is not None and done is not None and done < defined and profile.total_seconds:
        lines.append(
            f"Winograd does {done / 1e9:.3g} GFLOP instead of the {defined / 1e9:.3g} that the model's operators "
            f"define: by their definition the kernels run at {defined / profile.total_seconds / 1e9:.3g} GFLOP/s."
        )
    limits = profile.limits
    if limits is not None:
        levels = ", ".join(
            f"{one.bytes_per_second / 1e9:.3g} GB/s from {one.level}" for one in limits.bandwidths
        )
        peaks = {"float32": limits.flops_per_second, **limits.peaks}
        rates = ", ".join(f"{rate / 1e9:.3g} GFLOP/s in {dtype}" for dtype, rate in peaks.items())
        counted = f"{limits.threads} {limits.unit}{'s' if limits.threads > 1 else ''}"
        if limits.unit == "thread":
            found = f"of this machine ({limits.processor}, {counted}), measured now: {rates}, {levels}"
        else:
            found = f"of {limits.processor} ({counted}): {rates} at its highest clock; measured now, {levels}"
        lines.append(f"The limit {found}.")
    return [*lines, *above_limit_lines(profile)]


def above_limit_lines(profile: KernelProfile) -> list[str]:
    """Why kernels stand above 100 % of the limit, where some do."""
    above = profile.above_limit
    if not above:
        return []
    one = len(above) == 1
    return [
        f"{len(above)} kernel{' is' if one else 's are'} above 100 % of the limit, which was measured "
        f"{profile.limit_measurements} times: other programs were using this machine, or the kernel"
        f"{' is' if one else 's are'} too short for the clock. Measure again when the machine is idle."
    ]
