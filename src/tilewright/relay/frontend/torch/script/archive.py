"""TorchScript archives: files that ``torch.jit.save`` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.relay.frontend.common import ShapeNeeded, check_input_names
from tilewright.relay.frontend.registry import Imported
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script.model import from_pytorch, inlined_graph
from tilewright.support.errors import ModelError
from tilewright.support.wording import argument


def load_script(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read an archive; the options are those of ``relay.frontend.from_pytorch``.

    A traced module knows the shapes that it was traced with, a file does not: ``shape`` gives them by the names that
    the inputs have in the graph. For a model with one input any name will do.
    """
    torch = torch_package()
    try:
        module = torch.jit.load(path, map_location="cpu")
    except RuntimeError as error:
        raise ModelError(f"{path} cannot be loaded as TorchScript: {str(error).splitlines()[0]}") from error
    module.eval()
    return from_pytorch(module, _infos(path, module, shape), **options)


def _infos(path: str, module: Any, shape: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    graph, owner = inlined_graph(module)
    inputs = [_plain(value.debugName()) for value in list(graph.inputs())[owner is not None :]]
    if not shape and inputs:
        raise ShapeNeeded(
            f"{path} is TorchScript, which does not say the shapes of its inputs {', '.join(inputs)}: give "
            f"{argument('shape', {inputs[0]: (1, 3, 224, 224)})}"
        )
    given = dict(shape or {})
    if len(inputs) == 1 and len(given) == 1:
        return list(given.items())
    check_input_names(given, inputs, inputs)
    lacking = [name for name in inputs if name not in given]
    if lacking:
        raise ShapeNeeded(f"{path} has the inputs {', '.join(inputs)}: the shape of {lacking[0]} is missing")
    return [(name, given[name]) for name in inputs]


def _plain(name: str) -> str:
    """The name of an input in the source: TorchScript appends numbers to names that it uses again."""
    stem, dot, number = str(name).rpartition(".")
    return stem if dot and number.isdigit() else str(name)
