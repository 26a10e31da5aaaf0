"""The table of a model's kernels on the terminal, as ``run --profile`` and ``profile`` print it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tilewright.driver import profile
from tilewright.driver.cli.output import show_table, show_text

if TYPE_CHECKING:
    from tilewright.driver.profile.kernels import KernelProfile


def show_kernels(name: str, kernels: KernelProfile) -> None:
    """Print a table of kernels, the slowest first, and what they are compared with. Names are shortened only where a
    person looks on."""
    table = profile.table
    rows = table.kernel_rows(kernels, complete=not sys.stdout.isatty())
    show_table(f"kernels of {name}", table.COLUMNS, rows)
    for line in table.summary_lines(kernels):
        show_text(line)
