"""What the file of a model says of itself, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tensor:
    """An input or output: a size that is open is its name or None; the shape is None where the file says nothing."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Weights:
    """Tensors that the file holds."""

    tensors: int
    elements: int
    bytes: int


@dataclass(frozen=True)
class Described:
    """A model as its file describes it."""

    format: str
    producer: str = ""
    """The program that wrote the file, with its version."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Of the format, and of the operators, by name."""
    operators: Mapping[str, int] = field(default_factory=dict)
    """How often each operator occurs, under the format's names."""
    weights: Mapping[str, Weights] = field(default_factory=dict)
    """By where they are stored."""
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
