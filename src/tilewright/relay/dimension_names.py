"""The model's names of dimensions, such as batch: an attribute of ``main``, which passes and saved modules keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.relay.function import Function

DIMENSION_NAMES = "dimension_names"
"""The attribute: for inputs and outputs, by name, a name for each dimension; empty for one without."""


def with_dimension_names(function: Function, names: Mapping[str, Sequence[str]]) -> Function:
    """The function with names for the dimensions of its inputs and outputs; tensors without any are left out."""
    kept = {tensor: list(given) for tensor, given in names.items() if any(given)}
    return function.with_attr(DIMENSION_NAMES, kept) if kept else function


def all_dimension_names(function: Function) -> dict[str, tuple[str, ...]]:
    """The names of the dimensions of every input and output that has some."""
    given = function.attrs.get(DIMENSION_NAMES)
    if not isinstance(given, Mapping):
        return {}
    return {str(tensor): tuple(str(name) for name in names) for tensor, names in given.items()}
