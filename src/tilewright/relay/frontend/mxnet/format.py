"""MXNet as a format of models: ``from_mxnet``, and the pair of files that ``block.export`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.ir.module import IRModule
from tilewright.relay.frontend.common import Unsupported, check_input_names, require_supported
from tilewright.relay.frontend.common.description import Described, Tensor, Weights
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.mxnet.gluon import is_block, traced
from tilewright.relay.frontend.mxnet.importer import SymbolImporter, list_unsupported, needed_nodes
from tilewright.relay.frontend.mxnet.parameters import LIST_MAGIC, parameter_values
from tilewright.relay.frontend.mxnet.symbol import VARIABLE, Symbol, read_symbol
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

_SUFFIX: Final = "-symbol.json"
"""How the names of files of symbols end; the parameters are beside them as ``NAME-0000.params``."""
_PARAMETERS: Final = LIST_MAGIC.to_bytes(16, "little")
"""How files of parameters begin."""


def from_mxnet(
    symbol: Any,
    shape: Mapping[str, Any] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    arg_params: Any = None,
    aux_params: Any = None,
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from an MXNet symbol: a path, JSON text, or an object with ``tojson()``.

    A gluon block in memory serves too, where MXNet can be imported; its inputs are those that ``shape`` names.

    ``arg_params`` and ``aux_params`` are dictionaries of arrays, or files that MXNet wrote (paths or bytes); a file
    with both kinds is given as either. ``shape`` maps the inputs to their shapes, ``dtype`` is the element type of all
    inputs or maps each to its own. Labels of losses are not inputs.
    """
    if is_block(symbol):
        if arg_params is not None or aux_params is not None:
            raise ModelError("a gluon block has its own parameters: leave out arg_params and aux_params")
        symbol, arg_params = traced(symbol, list(shape or {}))
    read = read_symbol(symbol)
    require_supported(list_unsupported(read))
    parameters = {
        **parameter_values(arg_params, "arg_params"),
        **parameter_values(aux_params, "aux_params"),
    }
    check_input_names(
        shape or {}, read.variables, [name for name in read.variables if name not in parameters]
    )
    scope = Scope(IRModule())
    importer = SymbolImporter(read, scope, parameters, shape or {}, dtype)
    with recursion_room():
        outputs = importer.convert()
        return finished(scope.module, importer.inputs, outputs, _output_names(read), scope.params)


def _output_names(symbol: Symbol) -> list[str]:
    """The heads as MXNet calls them; a head that is not the first result of its node has its number after it."""
    return [f"{symbol.nodes[place].name}_output{number or ''}" for place, number in symbol.heads]


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a symbol's file with the parameters beside it; the options are those of ``from_mxnet``."""
    if "arg_params" not in options:
        options["arg_params"] = _parameters_beside(Path(path))
    return from_mxnet(Path(path), shape, **options)


def _parameters_beside(path: Path) -> Path | None:
    """The file of parameters of the last epoch that has the name of a symbol's file; None where there is none."""
    if not path.name.endswith(_SUFFIX):
        if path.suffix == ".params":
            raise ModelError(f"{path} holds parameters only: name the symbol's file, which ends in {_SUFFIX}")
        return None
    prefix = path.name[: -len(_SUFFIX)] + "-"
    found = [
        one
        for one in path.parent.iterdir()
        if one.suffix == ".params" and one.name.startswith(prefix) and one.stem[len(prefix) :].isdigit()
    ]
    return max(found, key=lambda one: int(one.stem[len(prefix) :]), default=None)


def is_mxnet(head: bytes) -> bool:
    """True if a file begins as the JSON text of a symbol does, or as a file of parameters."""
    return b"".join(head.split()).startswith(b'{"nodes":[{"op":') or head.startswith(_PARAMETERS)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The operators of a model that cannot be converted."""
    return list_unsupported(read_symbol(Path(path)))


def describe(path: str) -> Described:
    """What the files say of themselves; symbols do not hold the shapes of inputs."""
    symbol = read_symbol(Path(path))
    beside = _parameters_beside(Path(path))
    parameters = parameter_values(beside, "the parameters")
    nodes = [symbol.nodes[place] for place in needed_nodes(symbol)]
    counts: dict[str, int] = {}
    for node in nodes:
        if node.operator != VARIABLE:
            counts[node.operator] = counts.get(node.operator, 0) + 1
    inputs = [node.name for node in nodes if node.operator == VARIABLE and node.name not in parameters]
    held = list(parameters.values())
    weights = Weights(len(held), sum(one.size for one in held), sum(one.nbytes for one in held))
    return Described(
        "mxnet",
        f"MXNet {symbol.version // 10000}.{symbol.version // 100 % 100}.{symbol.version % 100}"
        if symbol.version
        else "",
        {},
        counts,
        {beside.name: weights} if beside is not None else {},
        [Tensor(name, "float32", None) for name in inputs],
        [Tensor(name, "float32", None) for name in _output_names(symbol)],
    )


FRONTEND: Final = Frontend("mxnet", (), load, is_mxnet, unsupported_in, describe)
