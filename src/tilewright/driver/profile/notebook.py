"""Profiles as a notebook shows them: a table of kernels with bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.driver.profile.table import COLUMNS, kernel_rows, summary_lines
from tilewright.support import html

if TYPE_CHECKING:
    from tilewright.driver.profile.kernels import KernelProfile


def kernels_html(profile: KernelProfile, name: str = "") -> str:
    """The kernels, the slowest first, each with its share of the time as a bar, and what they are compared with."""
    shares = [kernel.share for kernel in profile.kernels()]
    rows = []
    for share, row in zip([*shares, 0.0], kernel_rows(profile), strict=True):
        rows.append([row[0], html.Bar(share, row[1]), *row[2:]])
    notes = "".join(f'<div class="soft">{html.text(line)}</div>' for line in summary_lines(profile))
    return html.fragment("Profile", html.table(COLUMNS, rows), notes, subtitle=name)
