"""Small models made in tests, run on Tilewright and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from tests.relay.frontend.onnx import reference_runtime

from tilewright.relay.frontend.onnx import backend


def node_model(
    operator: str,
    inputs: Mapping[str, Any],
    outputs: int = 1,
    domain: str = "",
    opset: int = 21,
    constants: Mapping[str, Any] | None = None,
    unknown: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node. An input that is None is left out; ``constants`` are initializers, in the order of the
    inputs where they are named there. With ``unknown`` no dimension of an input is known."""
    stored = dict(constants or {})
    names = ["" if value is None and name not in stored else name for name, value in inputs.items()]
    made = [f"out{number}" for number in range(outputs)]
    node = helper.make_node(operator, names, made, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype),
            [f"{name}{axis}" for axis in range(np.ndim(value))] if unknown else np.shape(value),
        )
        for name, value in inputs.items()
        if value is not None and name not in stored
    ]
    graph = helper.make_graph(
        [node],
        "one",
        infos,
        [onnx.ValueInfoProto(name=name) for name in made],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def run(model: Any, inputs: Mapping[str, Any], executor: str | None = "debug") -> list[Any]:
    """The outputs of a model for the inputs that it has."""
    known = {info.name for info in model.graph.input}
    given = {name: value for name, value in inputs.items() if name in known}
    return list(backend.prepare(model, executor=executor).run(given))


def assert_close(
    found: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-4, atol: float = 1e-5
) -> None:
    """The same number of arrays of the same shapes, types and nearly the same values."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.astype("float64"), other.astype("float64"), rtol=rtol, atol=atol)


def check_like_onnx_runtime(
    operator: str,
    inputs: Mapping[str, Any],
    outputs: int = 1,
    domain: str = "",
    opset: int = 21,
    constants: Sequence[str] = (),
    unknown: bool = True,
    rtol: float = 1e-4,
    **attributes: Any,
) -> None:
    """ONNX Runtime and Tilewright agree on a node, with all sizes known and, unless it cannot be, with none.

    The inputs that ``constants`` names are initializers.
    """
    stored = {name: inputs[name] for name in constants}
    given = {name: value for name, value in inputs.items() if value is not None and name not in stored}
    for openness in (False, True) if unknown else (False,):
        model = node_model(operator, inputs, outputs, domain, opset, stored, openness, **attributes)
        expected = reference_runtime.outputs(model, given)
        assert_close(run(model, given), expected, rtol=rtol)
