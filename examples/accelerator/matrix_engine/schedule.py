"""From a layer to a command stream: tiles of 16 pixels by 16 output channels, the depth in pieces that fit.

The scratchpad holds, from its beginning: the pixels of a tile, the weights of 16 output channels, the table of those
channels (bias, multipliers, shifts), and the finished tile. Weights are loaded once for each 16 output channels where
their whole depth fits at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matrix_engine.commands import SIDE, Program
from matrix_engine.layers import Layer, Window

DEPTH = 896
"""Bytes of a row of pixels or weights: two blocks of 16 rows leave room for the table and the result."""
DATA, WEIGHTS, TABLE, OUTPUT = range(4)
"""The engine's buffers of one layer."""

_PIXELS = 0
_WEIGHTS = SIDE * DEPTH
_TABLE = 2 * SIDE * DEPTH
_RESULT = _TABLE + 3 * 4 * SIDE


@dataclass(frozen=True)
class Piece:
    """Some channels of a tap."""

    tap: int
    first: int
    size: int


def table_of(layer: Layer) -> np.ndarray:
    """The table in memory: for each 16 output channels their biases, multipliers and shifts."""
    blocks = -(-layer.units // SIDE)
    padded = np.zeros((3, blocks * SIDE), "int32")
    for row, values in enumerate((layer.bias, layer.multipliers, layer.shifts)):
        padded[row, : layer.units] = values
    return np.ascontiguousarray(padded.reshape(3, blocks, SIDE).transpose(1, 0, 2))


def command_stream(layer: Layer) -> Program:
    """The commands that compute a layer."""
    program = Program()
    groups = list(_groups(layer.weights.shape[1], layer.window.channels))
    row = layer.weights.shape[1] * layer.window.channels
    for first in range(0, layer.units, SIDE):
        columns = min(SIDE, layer.units - first)
        program.load(TABLE, first // SIDE * 3 * 4 * SIDE, 0, _TABLE, 0, 1, 3 * 4 * SIDE)
        if len(groups) == 1:
            program.load(WEIGHTS, first * row, row, _WEIGHTS, DEPTH, columns, row)
        for start, pixels in _tiles(layer.window):
            program.start(_TABLE, columns)
            for group in groups:
                depth = sum(piece.size for piece in group)
                if len(groups) > 1:
                    offset = first * row + group[0].tap * layer.window.channels + group[0].first
                    program.load(WEIGHTS, offset, row, _WEIGHTS, DEPTH, columns, depth)
                to = _PIXELS
                for piece in group:
                    _gather(program, layer, start, pixels, piece, to)
                    to += piece.size
                program.multiply(_PIXELS, DEPTH, _WEIGHTS, DEPTH, pixels, columns, depth, layer.zeros)
            tables = (_TABLE + 4 * SIDE, _TABLE + 8 * SIDE)
            program.requantize(
                *tables, _RESULT, SIDE, pixels, columns, layer.out_zero, layer.limits, layer.away
            )
            program.store(OUTPUT, start * layer.units + first, layer.units, _RESULT, SIDE, pixels, columns)
    program.end()
    return program


def _groups(taps: int, channels: int) -> Iterator[list[Piece]]:
    """The depth in groups that fit a row of the scratchpad: of several taps, or of a part of one."""
    if channels > DEPTH:
        for tap in range(taps):
            for first in range(0, channels, DEPTH):
                yield [Piece(tap, first, min(DEPTH, channels - first))]
        return
    most = DEPTH // channels
    for tap in range(0, taps, most):
        yield [Piece(one, 0, channels) for one in range(tap, min(tap + most, taps))]


def _tiles(window: Window) -> Iterator[tuple[int, int]]:
    """The output pixels in pieces of at most 16 within a row of the image: number of the first, and how many."""
    for line in range(window.batch * window.out_height):
        for first in range(0, window.out_width, SIDE):
            yield line * window.out_width + first, min(SIDE, window.out_width - first)


def _gather(program: Program, layer: Layer, start: int, pixels: int, piece: Piece, to: int) -> None:
    """The values of a piece for each pixel of a tile. What lies outside of the image is the zero point."""
    window = layer.window
    line, first = divmod(start, window.out_width)
    image, out_row = divmod(line, window.out_height)
    down, right = divmod(piece.tap, window.kernel[1])
    row = out_row * window.strides[0] - window.padding[0] + down * window.dilation[0]
    left = first * window.strides[1] - window.padding[1] + right * window.dilation[1]
    step = window.strides[1]
    inside = [
        pixel
        for pixel in range(pixels)
        if 0 <= row < window.height and 0 <= left + pixel * step < window.width
    ]
    before = inside[0] if inside else pixels
    after = inside[-1] + 1 if inside else pixels
    for begin, end in ((0, before), (after, pixels)):
        if end > begin:
            program.fill(layer.zeros[0], to + begin * DEPTH, DEPTH, end - begin, piece.size)
    if inside:
        column = left + before * step
        offset = ((image * window.height + row) * window.width + column) * window.channels + piece.first
        stride = step * window.channels
        program.load(DATA, offset, stride, to + before * DEPTH, DEPTH, after - before, piece.size)
