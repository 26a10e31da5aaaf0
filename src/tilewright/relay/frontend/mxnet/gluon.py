"""Gluon blocks in memory, as TVM's programs pass them: they are called with symbols of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.support.errors import ModelError


def is_block(model: Any) -> bool:
    """True for a gluon block, which has parameters, and is not a symbol, which has JSON text."""
    return hasattr(model, "collect_params") and not hasattr(model, "tojson")


def traced(block: Any, inputs: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """The symbol of a block for inputs of these names, and its parameters."""
    try:
        import mxnet
    except ImportError as missing:
        raise ModelError(
            "reading a gluon block needs the mxnet package; block.export(prefix) writes files that need no package"
        ) from missing
    if not inputs:
        raise ModelError(
            "a gluon block does not know its inputs: give shape=, a dictionary with the shape of each"
        )
    made = block(*(mxnet.sym.Variable(name) for name in inputs))
    symbol = mxnet.sym.Group(list(made)) if isinstance(made, (list, tuple)) else made
    return symbol, {name: one.data() for name, one in block.collect_params().items()}
