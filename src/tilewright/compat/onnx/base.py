"""The base of TVM's converters of ONNX, and the call of this version's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tilewright.relay.frontend.onnx.ops as _converters
from tilewright.compat.frontend_attributes import get_relay_op
from tilewright.compat.onnx.helpers import onnx_input
from tilewright.ir.module import IRModule
from tilewright.relay import op
from tilewright.relay.expr import Tuple, TupleWrapper, Var
from tilewright.relay.frontend.onnx.importer import GraphImporter
from tilewright.relay.frontend.onnx.reading import view_of
from tilewright.relay.frontend.onnx.registry import DEFAULT_DOMAIN, converter_versions
from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.support.errors import OpNotImplemented

assert _converters  # importing it registers the converters

Attributes = Mapping[str, Any]
Implementation = Callable[..., Any]
AnyClass = TypeVar("AnyClass", bound=type)

TRAINING_DOMAIN = "ai.onnx.preview.training"
_PREFIX = "_impl_v"
_STATES = {"Adagrad": 2, "Adam": 3, "Momentum": 2}
"""How many tensors a training operator returns for each that it trains; it takes one more, the gradient."""


def convert_operator(
    operator: str,
    inputs: Sequence[Any],
    attr: Attributes,
    params: Mapping[str, Any],
    opset: int,
    domain: str = "",
) -> Any:
    """The expression of an operator for these inputs and attributes, as this version's frontend has it; of several
    results, a ``TupleWrapper``. ``params`` has the values of variables that are weights."""
    onnx = onnx_package()
    version = 1 if domain else opset
    schema = onnx.defs.get_schema(operator, opset) if not domain else None
    attributes = {name: value for name, value in attr.items() if name != "tvm_custom"}
    count = _number_of_outputs(operator, inputs, attr, schema)
    proto = onnx.helper.make_node(
        operator,
        ["" if one is None else f"input{place}" for place, one in enumerate(inputs)],
        [f"output{place}" for place in range(count)],
        domain=domain,
    )
    for name, value in attributes.items():
        known = None if schema is None or name not in schema.attributes else schema.attributes[name].type
        kind = None if known is None else int(getattr(known, "value", known))
        proto.attribute.append(onnx.helper.make_attribute(name, value, attr_type=kind))
    graph = GraphImporter(IRModule(), {"": opset, domain: version}, {})
    for one in inputs:
        if isinstance(one, Var):
            graph.define(one.name_hint, one)
            if one.name_hint in params:
                graph.param_values[one] = view_of(params[one.name_hint])
    results = graph.converted(proto, list(inputs))
    return results[0] if len(results) == 1 else TupleWrapper(Tuple(results), len(results))


def _number_of_outputs(operator: str, inputs: Sequence[Any], attr: Attributes, schema: Any) -> int:
    """How many results a converter returns: those that the caller names, those that the operator has at least, or all
    where each may be left out."""
    named = attr.get("tvm_custom", {}).get("num_outputs")
    if named is not None:
        return int(named)
    if operator in _STATES:
        return (len(inputs) - 2) // (_STATES[operator] + 1) * _STATES[operator]
    if operator == "If":
        return len(attr["then_branch"].output)
    if operator == "Loop":
        return len(attr["body"].output) - 1
    if operator == "Split" and "split" in attr:
        return len(attr["split"])
    return 1 if schema is None else schema.min_output or schema.max_output


def standard_implementation(operator: str, domain: str, since: int) -> Implementation:
    """A method (inputs, attr, params) that converts an operator."""

    def implementation(
        cls: type[OnnxOpConverter], inputs: Any, attr: Attributes, params: Any, opset: int = since
    ) -> Any:
        return convert_operator(operator, inputs, attr, params, opset, domain)

    implementation.__doc__ = f"{operator}, from opset {since} on."
    return implementation


def converts(operator: str, domain: str = DEFAULT_DOMAIN) -> Callable[[AnyClass], AnyClass]:
    """Give a class the methods that convert an operator: one for each opset that changed it."""

    def decorated(made: AnyClass) -> AnyClass:
        for since in converter_versions(domain, operator):
            method = classmethod(standard_implementation(operator, domain, since))
            setattr(made, f"{_PREFIX}{since}", method)
        return made

    return decorated


class OnnxOpConverter:
    """Converts an operator: a method ``_impl_vN(inputs, attr, params)`` for each opset N that changed it.

    A subclass with methods of its own is used where its methods are the newest.
    """

    @classmethod
    def get_converter(cls, opset: int) -> Implementation:
        """The function (inputs, attr, params) for an opset: that of the newest method that it allows."""
        versions = [int(name.removeprefix(_PREFIX)) for name in dir(cls) if name.startswith(_PREFIX)]
        usable = [version for version in versions if version <= opset]
        if not usable:
            raise OpNotImplemented(f"opset version {opset} of {cls.__name__} not supported")
        found: Implementation = getattr(cls, f"{_PREFIX}{max(usable)}")
        standard = getattr(found, "__func__", found).__qualname__.startswith("standard_implementation.")
        return functools.partial(found, opset=opset) if standard else found


class Unary(OnnxOpConverter):
    """An operator of one tensor; ``name`` is Relay's."""

    name = ""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        assert len(inputs) == 1, f"Unary op takes 1 input, {len(inputs)} given"
        return get_relay_op(cls.name)(inputs[0])


class Elemwise(OnnxOpConverter):
    """An operator of two tensors; ``name`` is Relay's. Old models align the second to an ``axis`` of the first."""

    name = ""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        left, right = inputs
        if attr.get("broadcast", 0) and "axis" in attr:
            right = op.expand_dims(right, axis=int(attr["axis"]) + 1, num_newaxis=2)
        return get_relay_op(cls.name)(left, right)


class Pool(OnnxOpConverter):
    """A pooling window; ``name`` is the operator of ONNX without ``Pool``: "Max", "Average"."""

    name = ""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        operator = {"max_pool": "MaxPool", "avg_pool": "AveragePool"}[cls.name]
        return convert_operator(operator, onnx_input(inputs)[:1], attr, params, 11)
