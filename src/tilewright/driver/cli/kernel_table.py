"""The table of a model's kernels on the terminal, as ``run --profile`` and ``profile`` print it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.driver import profile
from tilewright.driver.cli.output import printable, show_table

if TYPE_CHECKING:
    from tilewright.driver.profile.kernels import KernelProfile


def show_kernels(name: str, kernels: KernelProfile) -> None:
    """Print a table of kernels, the slowest first, and what they are compared with."""
    table = profile.table
    show_table(f"kernels of {name}", table.COLUMNS, table.kernel_rows(kernels))
    for line in table.summary_lines(kernels):
        print(printable(line))
