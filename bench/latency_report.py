"""The table and the plot of the latency bench."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from contenders import CONTENDERS, version
from harness import write_table
from isa import limit

OURS = "tilewright"
REFERENCE = "onnxruntime"

COLOURS = {
    "tilewright": "#c8452d",
    "onnxruntime": "#4477aa",
    "openvino": "#66a3c9",
    "mnn": "#5b8a5a",
    "torch": "#a08a5f",
    "torch_compile": "#c9b178",
    "ncnn": "#8f6fa8",
}


def geometric_mean(values: Iterable[float]) -> float | None:
    """None for no values."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def best_peer(row: Any, names: Sequence[str]) -> tuple[str, float] | None:
    """The quickest contender apart from ours, and its time."""
    times = [(row.entries[name].seconds, name) for name in names if name != OURS and name in row.entries]
    there = [(seconds, name) for seconds, name in times if seconds is not None]
    return (min(there)[1], min(there)[0]) if there else None


def ours(row: Any) -> float | None:
    """Our time, where there is one."""
    return row.entries[OURS].seconds if OURS in row.entries else None


def milliseconds(seconds: float | None) -> str:
    """Three figures."""
    if seconds is None:
        return "-"
    value = seconds * 1e3
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def megabytes(amount: int | None) -> str:
    """Whole ones."""
    return "-" if amount is None else f"{amount / 2**20:.0f}"


def ratio(top: float | None, bottom: float | None) -> str:
    """How many times as quick, with two decimals."""
    return "-" if top is None or bottom is None else f"{top / bottom:.2f}"


def cells(row: Any, names: Sequence[str]) -> list[str]:
    """One line of the table."""
    mine, best = ours(row), best_peer(row, names)
    time = {name: row.entries[name].seconds if name in row.entries else None for name in names}
    peer = f"{ratio(best[1], mine)} ({CONTENDERS[best[0]].title})" if best and mine else "-"
    entry = row.entries.get(OURS)
    compiled = "-" if entry is None or entry.compiled is None else f"{entry.compiled:.1f}"
    memory = [row.entries[name].memory if name in row.entries else None for name in (OURS, REFERENCE)]
    return [
        row.name,
        f"{row.operations / 1e9:.2f}",
        milliseconds(row.limit or None),
        *[milliseconds(time[name]) for name in names],
        "-" if mine is None else f"{row.limit / mine:.0%}",
        peer,
        ratio(time.get(REFERENCE), mine),
        compiled,
        f"{megabytes(memory[0])} / {megabytes(memory[1])}",
    ]


def means(rows: Sequence[Any], names: Sequence[str]) -> str:
    """How many times as quick as each peer, over the models that both ran."""
    lines = []
    done = [row for row in rows if ours(row) is not None]
    found = [best[1] / ours(row) for row in done if (best := best_peer(row, names))]
    if (mean := geometric_mean(found)) is not None:
        lines.append(f"- the best peer of each model: {mean:.2f} (worst {min(found):.2f})")
    for name in names:
        times = [(row.entries[name].seconds, ours(row)) for row in done if name in row.entries]
        found = [theirs / mine for theirs, mine in times if theirs is not None]
        if name != OURS and (mean := geometric_mean(found)) is not None:
            lines.append(f"- {CONTENDERS[name].title}: {mean:.2f} over {len(found)} models")
    title = "Geometric means, peer's time / Tilewright's (above 1: Tilewright is quicker):"
    return "\n".join([title, "", *lines]) if lines else ""


def failures(rows: Sequence[Any]) -> str:
    """Who did not take part in what, and why."""
    lines = [f"- {row.name}: {row.failure}" for row in rows if row.failure]
    lines += [
        f"- {row.name}, {CONTENDERS[name].title}: {' '.join(entry.failure.split())}"
        for row in rows
        for name, entry in row.entries.items()
        if entry.failure
    ]
    return "\n".join(["Not measured:", "", *lines]) if lines else ""


def write_report(
    path: Path,
    rows: Sequence[Any],
    names: Sequence[str],
    limits: Any,
    rounds: int,
) -> None:
    """The table at ``path`` and the plot next to it."""
    header = [
        "model",
        "GFLOP",
        "limit ms",
        *[f"{CONTENDERS[name].title} ms" for name in names],
        "of the limit",
        "best peer / ours",
        "ONNX Runtime / ours",
        "compile s",
        "MB ours / ONNX Runtime",
    ]
    threads = limits.threads
    levels = ", ".join(f"{one.level} {one.bytes_per_second / 1e9:.0f}" for one in limits.bandwidths)
    about = (
        f"{threads} threads, batch 1, float32, no tuning. Medians of {rounds} alternating rounds, each contender in "
        f"its own process. FMA peak of {threads} threads {limits.flops_per_second / 1e9:.0f} GFLOP/s, GB/s read: "
        f"{levels}. The limit of a model is the longer of its multiply-adds at that peak and its weights read once "
        "from the smallest level that holds them; convolutions count as direct ones, so that Winograd can pass it. "
        "Compile time is from the ONNX file with no kernel cached. Memory is the most while running, beyond that of "
        "the process before the model was loaded. OpenVINO is told to keep to float32. LiteRT is not here: its "
        "converter (litert-torch) would replace packages of the environment that the others run in. "
        f"Load average of the machine at the end: {os.getloadavg()[0]:.1f}."
    )
    if limit() != "native":
        hidden, left = {
            "avx2": (", AMX and AVX-VNNI", "AVX2"),
            "avx_vnni": (" and AMX", "AVX2 and AVX-VNNI"),
        }[limit()]
        about += (
            f" AVX-512{hidden} are hidden from all contenders (the CPUID instruction is answered without them), so "
            f"that each takes its code for {left}, and the peak is that of AVX2; caches and clock are this machine's."
        )
    versions = ", ".join(f"{CONTENDERS[name].title} {version(name)}".strip() for name in names)
    notes = [about, f"Versions: {versions}.", means(rows, names), failures(rows)]
    body = [cells(row, names) for row in rows if not row.failure]
    write_table(path, "Latency of whole models", header, body, "\n\n".join(note for note in notes if note))
    path.with_suffix(".svg").write_text(plot(rows, names))


# ---- the plot ----

LEFT, BAR, GAP, SCALE, WIDEST = 150, 9, 12, 260, 2.5


def plot(rows: Sequence[Any], names: Sequence[str]) -> str:
    """Bars to the right: how quick each contender is, with the best peer of the model as 1."""
    shown = [(row, best) for row in rows if (best := best_peer(row, names))]
    step = BAR * len(names) + GAP
    height, width = 50 + step * len(shown) + 20, LEFT + int(SCALE * WIDEST) + 60
    parts = [text(LEFT, 18, "speed, best peer of each model = 1 (longer is quicker)", size=12)]
    for index, name in enumerate(names):
        x = LEFT + 105 * index
        parts.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{COLOURS[name]}"/>')
        parts.append(text(x + 14, 37, CONTENDERS[name].title))
    for number, (row, best) in enumerate(shown):
        top = 50 + step * number
        parts.append(text(LEFT - 8, top + step // 2, row.name, anchor="end", size=11))
        for index, name in enumerate(names):
            entry = row.entries.get(name)
            y = top + BAR * index
            if entry is None or entry.seconds is None:
                parts.append(text(LEFT + 3, y + BAR - 1, "-", size=8))
                continue
            speed = best[1] / entry.seconds
            length = SCALE * min(speed, WIDEST)
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 1}" fill="{COLOURS[name]}"/>'
            )
            parts.append(text(LEFT + length + 3, y + BAR - 1, f"{speed:.2f}", size=8))
    for mark in (1.0, 2.0):
        x = LEFT + SCALE * mark
        parts.append(
            f'<line x1="{x:.0f}" y1="46" x2="{x:.0f}" y2="{height - 16}" stroke="#888" stroke-dasharray="3 3"/>'
        )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 10) -> str:
    """Words in the plot."""
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}">{escape(content)}</text>'
