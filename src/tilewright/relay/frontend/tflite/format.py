"""TFLite as a format of models: ``from_tflite``, and how its files begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilewright.ir.module import IRModule
from tilewright.relay.frontend.common import Unsupported, check_input_names, require_supported
from tilewright.relay.frontend.common.description import Described, Weights
from tilewright.relay.frontend.common.description import Tensor as DescribedTensor
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.relay.frontend.tflite.converter import ConstantTable, OperatorConverter
from tilewright.relay.frontend.tflite.importer import GraphImporter, list_unsupported, new_scope
from tilewright.relay.frontend.tflite.model import IDENTIFIER, Subgraph, Tensor, read_model
from tilewright.support.recursion import recursion_room


def from_tflite(
    model: Any,
    shape_dict: Mapping[str, Any] | None = None,
    dtype_dict: Mapping[str, str] | None = None,
    op_converter: type[OperatorConverter] = OperatorConverter,
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a TFLite model: a path, the bytes of a file, or a ``tflite.Model``.

    ``shape_dict`` and ``dtype_dict`` give shapes and element types of inputs by name, and win over what the model says.
    Models stay in the layout they have, NHWC; the compiler chooses another where that pays. Quantised operators become
    those of the qnn dialect. A model that cannot be converted raises one error that names all that is missing.
    ``op_converter`` is ``OperatorConverter`` or a subclass of it with converters of one's own.
    """
    read = read_model(model)
    main = read.subgraphs[0]
    custom = op_converter(read, main, ConstantTable())
    overrides = custom.calls()
    require_supported(list_unsupported(read, overrides))
    names = [main.tensors[place].name for place in main.inputs]
    check_input_names(shape_dict or {}, names, names)
    scope = new_scope()
    graph = GraphImporter(read, main, scope, overrides)
    with recursion_room():
        inputs = graph.input_variables(shape_dict or {}, dtype_dict or {})
        outputs = graph.convert()
        output_names = [main.tensors[place].name for place in main.outputs]
        return finished(scope.module, inputs, outputs, output_names, scope.params)


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a file; the options are those of ``relay.frontend.from_tflite``."""
    return from_tflite(path, shape, **options)


def is_tflite(head: bytes) -> bool:
    """True if a file begins as a TFLite model does."""
    return head[4:8] == IDENTIFIER


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The operators of a model that cannot be converted."""
    return list_unsupported(read_model(path))


def describe(path: str) -> Described:
    """What a file says of itself."""
    read = read_model(path)
    main = read.subgraphs[0]
    counts: dict[str, int] = {}
    for operator in main.operators:
        counts[operator.name] = counts.get(operator.name, 0) + 1
    held = [one.value for graph in read.subgraphs for one in graph.tensors if one.value is not None]
    weights = Weights(len(held), sum(one.size for one in held), sum(one.nbytes for one in held))
    return Described(
        "tflite",
        read.description,
        {"schema": read.version},
        counts,
        {"file": weights},
        _described(main, main.inputs),
        _described(main, main.outputs),
    )


def _described(graph: Subgraph, places: Sequence[int]) -> list[DescribedTensor]:
    tensors: list[Tensor] = [graph.tensors[place] for place in places]
    return [DescribedTensor(one.name, one.dtype, one.signature) for one in tensors]


FRONTEND: Final = Frontend("tflite", ("tflite",), load, is_tflite, unsupported_in, describe)
