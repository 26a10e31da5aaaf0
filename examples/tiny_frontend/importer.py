"""From the lines of a model to a Relay module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.module import IRModule
from tilewright.relay.frontend.common import (
    ModelNode,
    Unsupported,
    check_input_names,
    collect_unsupported,
    input_type,
    require_supported,
)
from tilewright.relay.infer import infer_module
from tilewright.runtime import ndarray
from tilewright.support.errors import ModelError

OPERATORS: dict[str, Callable[..., relay.Expr]] = {
    "dense": lambda x, weight: relay.nn.dense(x, weight),
    "bias": lambda x, bias: relay.nn.bias_add(x, bias, axis=-1),
    "relu": lambda x: relay.nn.relu(x),
    "softmax": lambda x: relay.nn.softmax(x),
}
"""How each operator becomes an expression: of the value so far, and of the weights that its line names."""


@dataclass(frozen=True)
class Line:
    """A line of the file: an operator, and the words after it."""

    number: int
    operator: str
    words: tuple[str, ...]


def is_tiny(head: bytes) -> bool:
    """True if a file begins like a model."""
    return head.startswith(b"input ")


def from_tiny(path: str, shape: Mapping[str, Sequence[int]] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters; ``shape`` gives another shape to the input."""
    lines = _read(path)
    require_supported(_unsupported(lines))
    module = IRModule()
    variable = _input(lines[0], dict(shape or {}))
    weights = _weights(Path(path).with_suffix(".npz"))
    params: dict[str, relay.Var] = {}
    value: relay.Expr = variable
    for line in lines[1:]:
        node = ModelNode(line.operator, f"line {line.number}", {}, module)
        with node.conversion():
            for name in line.words:
                if name not in weights:
                    raise node.fail(f"there are no weights {name!r}; there are {', '.join(sorted(weights))}")
                params.setdefault(
                    name, relay.var(name, shape=weights[name].shape, dtype=str(weights[name].dtype))
                )
            value = OPERATORS[line.operator](value, *(params[name] for name in line.words))
            node.type_of(value)  # an error about shapes names the line, not the whole model
    module["main"] = relay.Function([variable, *params.values()], value)
    return infer_module(module), {name: ndarray.array(weights[name]) for name in params}


def unsupported_in(path: str) -> list[Unsupported]:
    """The operators of a model that there is no conversion for."""
    return _unsupported(_read(path))


def _unsupported(lines: Sequence[Line]) -> list[Unsupported]:
    return collect_unsupported(
        (line.operator, f"line {line.number}") for line in lines[1:] if line.operator not in OPERATORS
    )


def _read(path: str) -> list[Line]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"the model {path} cannot be read: {error}") from error
    words = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [Line(number, found[0], tuple(found[1:])) for number, found in words if found]
    if not lines or lines[0].operator != "input":
        raise ModelError(f"{path} is not a tiny model: its first line has to be 'input NAME SIZES...'")
    return lines


def _input(line: Line, shapes: dict[str, Sequence[int]]) -> relay.Var:
    if not line.words or not all(word.isdigit() for word in line.words[1:]):
        raise ModelError(f"line {line.number}: an input has a name and sizes, as in 'input x 1 4'")
    name, *sizes = line.words
    check_input_names(shapes, [name], [name])
    return relay.Var(name, input_type(name, shapes.get(name) or [int(size) for size in sizes], "float32"))


def _weights(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError) as error:
        raise ModelError(f"the weights {path} cannot be read: {error}") from error
