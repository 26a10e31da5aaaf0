"""Darknet as a format of models: ``from_darknet``, and the pair of files that a network is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.ir.module import IRModule
from tilewright.relay.expr import Var
from tilewright.relay.frontend.common import Unsupported, check_input_names, input_type, require_supported
from tilewright.relay.frontend.common.description import Described, Tensor
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.darknet.configuration import Section, read_configuration
from tilewright.relay.frontend.darknet.importer import convert, list_unsupported
from tilewright.relay.frontend.darknet.weights import read_weights
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

_INPUT: Final = "data"
"""What the input is called, as in TVM."""


def from_darknet(
    net: Any,
    shape: Any = None,
    dtype: str = "float32",
    weights: Any = None,
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a Darknet network: the path or the text of its cfg file, and its weights.

    ``weights`` is a path or the bytes of a file; where it is not given, the file beside the cfg file with the same name
    and the suffix ``.weights`` is read. ``shape`` is that of the input ``data``, or maps its name to it; unless given,
    it is one image of the size that the cfg file states. Outputs are those of TVM: the last layer, then the masks,
    anchors and sizes of detectors, and the results of those before the last. TVM's own function takes what Darknet's
    library has loaded; this one reads the files, and needs no library.
    """
    network, layers = read_configuration(net)
    require_supported(list_unsupported(layers))
    if dtype != "float32":
        raise ModelError(
            f"Darknet networks compute in float32, not {dtype}: use relay.transform.ToMixedPrecision"
        )
    held = read_weights(_weights_of(net) if weights is None else weights)
    if isinstance(shape, Mapping):
        check_input_names(shape, [_INPUT], [_INPUT])
        shape = shape.get(_INPUT)
    data = Var(_INPUT, input_type(_INPUT, _size(network) if shape is None else tuple(shape), dtype))
    scope = Scope(IRModule())
    with recursion_room():
        outputs = convert(layers, data, scope, held)
        if held.left:
            warnings.warn(
                f"{held.where}: {held.left} numbers are left over. Is it the file of this network?",
                stacklevel=2,
            )
        names = [f"output_{number}" for number in range(len(outputs))]
        return finished(scope.module, [data], outputs, names, scope.params)


def _weights_of(net: Any) -> Path:
    """The file of weights beside a cfg file."""
    if isinstance(net, str) and "[" in net:
        raise ModelError("the weights are missing: give weights=, a path or the bytes of a file")
    found = Path(net).with_suffix(".weights")
    if not found.is_file():
        raise ModelError(f"the weights are missing: there is no {found}, and weights= is not given")
    return found


def _size(network: Section) -> tuple[int, int, int, int]:
    """One image of the network's size."""
    sizes = []
    for name in ("channels", "height", "width"):
        text = network.options.get(name, "3" if name == "channels" else "0")
        if not text.isdecimal() or not 0 < int(text) < 1 << 24:
            raise ModelError(f"[{network.kind}]: the option {name!r} is {text!r}; it has to be a size")
        sizes.append(int(text))
    return 1, sizes[0], sizes[1], sizes[2]


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a cfg file with the weights beside it; the options are those of ``from_darknet``."""
    if Path(path).suffix == ".weights":
        raise ModelError(f"{path} holds weights only: name the cfg file, which has to be beside it")
    return from_darknet(Path(path), shape, **options)


def is_darknet(head: bytes) -> bool:
    """True if a file begins as a configuration does."""
    lines = [line.strip() for line in head.splitlines()]
    first = next((line for line in lines if line and line[:1] not in b"#;"), b"")
    return first in (b"[net]", b"[network]")


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The layers of a network that cannot be converted."""
    return list_unsupported(read_configuration(Path(path))[1])


def describe(path: str) -> Described:
    """What a cfg file says of itself."""
    network, layers = read_configuration(Path(path))
    counts: dict[str, int] = {}
    for section in layers:
        counts[section.kind] = counts.get(section.kind, 0) + 1
    return Described("darknet", operators=counts, inputs=[Tensor(_INPUT, "float32", _size(network))])


FRONTEND: Final = Frontend("darknet", ("cfg", "weights"), load, is_darknet, unsupported_in, describe)
