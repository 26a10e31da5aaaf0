"""Layers as C: the engine's driver, and for each layer its command stream, weights, table, and a function that runs it.

The driver is the same text for every layer, so that a program has it once.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from matrix_engine.commands import Program
from matrix_engine.layers import Layer
from matrix_engine.schedule import table_of

FOLDER = Path(__file__).resolve().parent.parent / "engine"


def driver() -> str:
    """The engine's header and driver as one text, whose names stay within the file that has it."""
    header, body = ((FOLDER / f"matrix_engine.{suffix}").read_text() for suffix in "hc")
    body = body.replace('#include "matrix_engine.h"', header)
    return re.sub(r"^int32_t matrix_engine_run", "static int32_t matrix_engine_run", body, flags=re.M)


def layer_source(name: str, layer: Layer, program: Program) -> str:
    """The function ``int32_t name(const void* data, void* output)`` and what it needs."""
    window = layer.window
    sizes = (
        window.batch * window.height * window.width * window.channels,
        layer.weights.size,
        table_of(layer).size * 4,
        window.batch * window.out_height * window.out_width * layer.units,
    )
    return f"""\
static const int32_t {name}_commands[] = {{{_numbers(program.words)}}};
static const int8_t {name}_weights[] = {{{_numbers(layer.weights)}}};
static const int32_t {name}_table[] = {{{_numbers(table_of(layer))}}};

/* {layer.units} output channels; {len(program)} commands, {program.cycles} cycles. */
static int32_t {name}(void* data, void* output) {{
  const matrix_engine_buffer buffers[] = {{
      {{data, {sizes[0]}, 0}},
      {{(void*){name}_weights, {sizes[1]}, 0}},
      {{(void*){name}_table, {sizes[2]}, 0}},
      {{output, {sizes[3]}, 1}},
  }};
  return matrix_engine_run({name}_commands, {len(program)}, buffers, 4, 0);
}}
"""


def _numbers(values: list[int] | np.ndarray) -> str:
    flat = [int(one) for one in np.asarray(values).ravel()]
    lines = [", ".join(map(str, flat[start : start + 24])) for start in range(0, len(flat), 24)]
    return ",\n    ".join(lines)
