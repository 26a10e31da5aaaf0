"""Caffe as a format of models: ``from_caffe``, and a ``.prototxt`` with its ``.caffemodel``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.ir.module import IRModule
from tilewright.relay.frontend.caffe.importer import NetImporter, list_unsupported
from tilewright.relay.frontend.caffe.net import Net, read_net
from tilewright.relay.frontend.common import Unsupported, check_input_names, require_supported
from tilewright.relay.frontend.common.description import Described, Tensor, Weights
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.support.recursion import recursion_room

_WEIGHTS: Final = ".caffemodel"
_LAYERS: Final = ".prototxt"


def from_caffe(
    init_net: Any,
    predict_net: Any,
    shape_dict: Mapping[str, Any] | None = None,
    dtype_dict: Mapping[str, str] | None = None,
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a network of Caffe.

    ``init_net`` has the weights (a ``.caffemodel``), ``predict_net`` the layers (a ``.prototxt``): paths, contents, or
    messages of Caffe's package. ``shape_dict`` and ``dtype_dict`` map inputs to shapes and element types; the shapes
    that the network states need not be given.
    """
    net = read_net(init_net, predict_net)
    require_supported(list_unsupported(net))
    shapes = shape_dict or {}
    check_input_names(shapes, net.inputs, net.inputs)
    scope = Scope(IRModule())
    importer = NetImporter(net, scope, shapes, dtype_dict or {})
    with recursion_room():
        outputs = importer.convert()
        return finished(scope.module, importer.inputs, outputs, net.outputs, scope.params)


def _files(path: Path) -> tuple[Path | None, Path]:
    """The files of the weights and of the layers that a path stands for."""
    if path.suffix == _WEIGHTS:
        layers = _named_like(path, _LAYERS)
        # A file of weights has the layers as well.
        return (path, layers) if layers is not None else (None, path)
    return _named_like(path, _WEIGHTS), path


def _named_like(path: Path, suffix: str) -> Path | None:
    """The file of the same name with another suffix; a text's name may have ``deploy`` in it."""
    plain = path.stem.removesuffix("_deploy").removesuffix(".deploy").removesuffix("-deploy")
    names = [path.stem, plain, f"{plain}_deploy", f"{plain}.deploy", f"{plain}-deploy"]
    found = next(
        (path.with_name(name + suffix) for name in names if path.with_name(name + suffix).is_file()), None
    )
    if found is not None:
        return found
    beside = sorted(path.parent.glob(f"*{suffix}"))
    return beside[0] if len(beside) == 1 else None


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read the file of layers with the weights beside it; the options are those of ``from_caffe``."""
    weights, layers = _files(Path(path))
    return from_caffe(options.pop("init_net", weights), layers, shape, **options)


def _read(path: str) -> Net:
    weights, layers = _files(Path(path))
    return read_net(weights, layers)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The layers of a model that cannot be converted."""
    return list_unsupported(_read(path))


def describe(path: str) -> Described:
    """What the files say of themselves."""
    net = _read(path)
    counts: dict[str, int] = {}
    for one in net.layers:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    held = [value for values in net.weights.values() for value in values]
    weights = Weights(len(held), sum(one.size for one in held), sum(one.nbytes for one in held))
    return Described(
        "caffe",
        "Caffe",
        {},
        counts,
        {"weights": weights} if held else {},
        [Tensor(name, "float32", shape) for name, shape in net.inputs.items()],
        [Tensor(name, "float32", None) for name in net.outputs],
    )


FRONTEND: Final = Frontend(
    "caffe", ("prototxt", "caffemodel"), load, list_unsupported=unsupported_in, describe=describe
)
