"""Caffe2 as a format of models: ``from_caffe2``, and ``predict_net.pb`` with ``init_net.pb`` beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.ir.module import IRModule
from tilewright.relay.frontend.caffe2.importer import NetImporter, list_unsupported
from tilewright.relay.frontend.caffe2.net import Net, read_net
from tilewright.relay.frontend.common import Unsupported, check_input_names, require_supported
from tilewright.relay.frontend.common.description import Described, Tensor, Weights
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

_PREDICT: Final = "predict_net"
_INIT: Final = "init_net"


def from_caffe2(
    init_net: Any,
    predict_net: Any,
    shape: Mapping[str, Any] | None = None,
    dtype: str | Mapping[str, str] = "float32",
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a network of Caffe2.

    ``init_net`` fills the weights, ``predict_net`` computes: paths, contents, or messages of Caffe2. ``shape`` maps the
    inputs to their shapes, ``dtype`` is the element type of all inputs or maps each to its own.
    """
    net = read_net(init_net, predict_net)
    require_supported(list_unsupported(net))
    shapes = shape or {}
    check_input_names(shapes, [*net.inputs, *net.external], net.inputs)
    scope = Scope(IRModule())
    importer = NetImporter(net, scope, shapes, dtype)
    with recursion_room():
        outputs = importer.convert()
        return finished(scope.module, importer.inputs, outputs, net.outputs, scope.params)


def _files(path: Path) -> tuple[Path | None, Path]:
    """The networks of weights and of operators that a path stands for: a folder, or either file."""
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.stem == _PREDICT)
        if not found:
            raise ModelError(f"{path} has no {_PREDICT}")
        path = found[0]
    if _INIT in path.name:
        raise ModelError(f"{path} fills the weights only: name the file {path.name.replace(_INIT, _PREDICT)}")
    beside = [
        path.with_name(path.name.replace(_PREDICT, _INIT)).with_suffix(suffix) for suffix in (".pb", ".pbtxt")
    ]
    return next((one for one in beside if _PREDICT in path.name and one.is_file()), None), path


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a network with its weights beside it; the options are those of ``from_caffe2``."""
    weights, network = _files(Path(path))
    return from_caffe2(options.pop("init_net", weights), network, shape, **options)


def is_folder(path: str) -> bool:
    """True if a folder has both networks."""
    stems = {one.stem for one in Path(path).iterdir()}
    return {_PREDICT, _INIT} <= stems


def _read(path: str) -> Net:
    weights, network = _files(Path(path))
    return read_net(weights, network)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The operators of a model that cannot be converted."""
    return list_unsupported(_read(path))


def describe(path: str) -> Described:
    """What the files say of themselves; networks do not hold the shapes of inputs."""
    net = _read(path)
    counts: dict[str, int] = {}
    for one in net.operators:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    held = list(net.weights.values())
    weights = Weights(len(held), sum(one.size for one in held), sum(one.nbytes for one in held))
    return Described(
        "caffe2",
        "Caffe2",
        {},
        counts,
        {_INIT: weights} if held else {},
        [Tensor(name, "float32", None) for name in net.inputs],
        [Tensor(name, "float32", None) for name in net.outputs],
    )


FRONTEND: Final = Frontend(
    "caffe2", (), load, list_unsupported=unsupported_in, describe=describe, is_folder=is_folder
)
