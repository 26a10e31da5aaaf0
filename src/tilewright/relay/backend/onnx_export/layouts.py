"""Layouts: blocked ones are written as reshapes and transposes, and operators on them as their plain forms."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.relay.backend.onnx_export.builder import GraphWriter
from tilewright.support.errors import ModelError
from tilewright.tir.data_layout import Layout


def _letters(layout: str) -> list[str]:
    return [letter for letter in layout if letter.isalpha()]


def transformed(
    graph: GraphWriter, data: str, shape: Sequence[int], source: str, target: str
) -> tuple[str, list[int]]:
    """A tensor of a shape brought from one layout to another, and its new shape."""
    if source == target:
        return data, list(shape)
    plain, extents = _to_plain(graph, data, list(shape), source)
    order = [letter for letter in _letters(target) if letter.isupper()]
    home = [letter for letter in _letters(source) if letter.isupper()]
    if sorted(order) != sorted(home):
        raise ModelError(f"the layout {source} cannot be brought to {target}")
    places = [home.index(letter) for letter in order]
    moved = graph.transpose(plain, places)
    return _from_plain(graph, moved, [extents[place] for place in places], target)


def _to_plain(graph: GraphWriter, data: str, shape: list[int], layout: str) -> tuple[str, list[int]]:
    """Inner parts joined to the outer parts of their axes; axes stay in the order of the outer ones."""
    letters = _letters(layout)
    outer = [letter for letter in letters if letter.isupper()]
    if len(outer) == len(letters):
        return data, shape
    order = [place for letter in outer for place, other in enumerate(letters) if other.upper() == letter]
    order.sort(key=lambda place: (outer.index(letters[place].upper()), letters[place].islower()))
    extents = []
    for letter in outer:
        size = 1
        for place, other in enumerate(letters):
            if other.upper() == letter:
                size *= shape[place]
        extents.append(size)
    return graph.reshape(graph.transpose(data, order), extents), extents


def _from_plain(graph: GraphWriter, data: str, shape: list[int], layout: str) -> tuple[str, list[int]]:
    """Axes split into the parts that a layout has, in its order."""
    letters = _letters(layout)
    outer = [letter for letter in letters if letter.isupper()]
    if len(outer) == len(letters):
        return data, shape
    factors = Layout(layout)
    split: list[tuple[str, int]] = []
    for letter, size in zip(outer, shape, strict=True):
        factor = int(factors.factor_of(letter))
        if factor <= 0:
            split.append((letter, size))
            continue
        if size % factor:
            raise ModelError(f"an axis of {size} elements cannot be divided into blocks of {factor}")
        split += [(letter, size // factor), (letter.lower(), factor)]
    names = [name for name, _ in split]
    order = [names.index(letter) for letter in letters]
    made = graph.transpose(graph.reshape(data, [size for _, size in split]), order)
    return made, [split[place][1] for place in order]
