"""Constants, attributes, tuples, and what a program asks about tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.common.sizes import multiplied, size_of, sizes_of
from tilewright.relay.frontend.torch.dtypes import SCALAR_TYPES, dtype_name, is_floating
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script.attributes import stored_tensor
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import (
    UNINITIALIZED,
    DictValue,
    ListValue,
    ModuleValue,
    Tensor,
)

# Constants and attributes


@operator("prim::Constant")
def constant(node: ScriptNode) -> Any:
    """A value that the graph holds."""
    value = node.torch_node.output().toIValue()
    return _imported(node, value)


def _imported(node: ScriptNode, value: Any) -> Any:
    if isinstance(value, torch_package().Tensor):
        stored, quantization = stored_tensor(value, node.name)
        made = node.store.tensor(Constant(stored))
        made.quantization = quantization
        return made
    if isinstance(value, list):
        return node.store.list_of([_imported(node, item) for item in value])
    if isinstance(value, tuple):
        return tuple(_imported(node, item) for item in value)
    if isinstance(value, dict):
        return node.store.dict_of({key: _imported(node, item) for key, item in value.items()})
    return value


@operator("prim::PythonOp")
def python_function(node: ScriptNode, *values: Any) -> Any:
    """A ``torch.autograd.Function``: the operators that its forward pass ran when it was traced."""
    if not node.torch_node.hasAttribute("Subgraph"):
        raise node.fail(f"the operators of the Python function {node.torch_node.pyname()} were not recorded")
    recorded = node.torch_node.g("Subgraph")
    results = node.graph.convert_graph(recorded, values)
    return results[0] if len(results) == 1 else results


@operator("prim::GetAttr")
def get_attribute(node: ScriptNode, owner: Any) -> Any:
    """A parameter, a buffer, a submodule, or a number of a module."""
    if not isinstance(owner, ModuleValue):
        raise node.fail(
            f"the attribute {node.text('name')!r} of an object that is not a module is not supported"
        )
    return node.graph.attributes.get(owner, node.text("name"))


@operator("prim::SetAttr")
def set_attribute(node: ScriptNode, owner: Any, value: Any) -> None:
    """An attribute of a module is replaced."""
    if not isinstance(owner, ModuleValue):
        raise node.fail(
            f"the attribute {node.text('name')!r} of an object that is not a module is not supported"
        )
    node.graph.attributes.set(owner, node.text("name"), value)


@operator("prim::Uninitialized")
def uninitialized(node: ScriptNode) -> Any:
    """A value that is never read."""
    return UNINITIALIZED


@operator(
    "prim::unchecked_cast",
    "prim::unchecked_unwrap_optional",
    "aten::_unwrap_optional",
    "prim::data",
    "prim::profile",
    "aten::cpu",
    "aten::cuda",
    "aten::requires_grad_",
    "aten::detach_",
    "aten::resolve_conj",
    "aten::resolve_neg",
)
def same(node: ScriptNode, value: Any, *options: Any) -> Any:
    """What is given: the change is one of type, of place or of gradients."""
    return value


@operator("aten::warn", "prim::Print", "prim::Exit", "aten::_assert_async", "aten::manual_seed")
def nothing(node: ScriptNode, *values: Any) -> None:
    """Output to the user is left out."""
    return


@operator("aten::format")
def format_(node: ScriptNode, text: str, *values: Any) -> str:
    """A string with values filled in; a question mark stands for what only the program knows."""
    known = [node.known(value) for value in values]
    return text.format(*("?" if isinstance(value, (Tensor, ListValue)) else value for value in known))


# Tuples


@operator("prim::TupleConstruct")
def tuple_construct(node: ScriptNode, *items: Any) -> Any:
    """A tuple; named ones are tuples."""
    return items


@operator("prim::TupleUnpack")
def tuple_unpack(node: ScriptNode, value: Any) -> Any:
    """The elements of a tuple."""
    items = node.items(value)
    return items[0] if len(items) == 1 else items


@operator("prim::TupleIndex")
def tuple_index(node: ScriptNode, value: Any, place: Any) -> Any:
    """An element of a tuple."""
    return value[node.number_of(node.resolved(place), "the index of a tuple")]


@operator("prim::TupleSlice")
def tuple_slice(node: ScriptNode, value: Any) -> Any:
    """Some elements of a tuple."""
    return value[node.torch_node.i("beg") : node.torch_node.i("end")]


# Questions about values


@operator("aten::__is__")
def is_(node: ScriptNode, one: Any, other: Any) -> bool:
    """True if both are None, or the same object."""
    return one is other


@operator("aten::__isnot__")
def is_not(node: ScriptNode, one: Any, other: Any) -> bool:
    """The opposite."""
    return one is not other


@operator("prim::isinstance")
def isinstance_(node: ScriptNode, value: Any) -> bool:
    """True if the value is of one of some types."""
    return any(_is_of(value, kind) for kind in node.torch_node.tys("types"))


def _is_of(value: Any, kind: Any) -> bool:
    name = kind.kind()
    if name == "OptionalType":
        return value is None or _is_of(value, kind.getElementType())
    if isinstance(value, Tensor):
        return str(name) == f"{value.number.capitalize() or 'Tensor'}Type"
    known = {
        "NoneType": type(None),
        "BoolType": bool,
        "IntType": int,
        "FloatType": float,
        "StringType": str,
        "ListType": ListValue,
        "TupleType": tuple,
        "DictType": DictValue,
    }.get(name)
    return bool(known is not None and type(value) is known)


@operator("prim::dtype")
def dtype_of(node: ScriptNode, tensor: Any) -> int:
    """The element type, as a number."""
    quantization = getattr(tensor, "quantization", None)
    if quantization is not None:
        return {"int8": 12, "uint8": 13, "int32": 14}[quantization.dtype]
    return _number_of_dtype(node.dtype(node.resolved(tensor)))


def _number_of_dtype(name: str) -> int:
    return next(number for number, known in SCALAR_TYPES.items() if known == name)


@operator("prim::device")
def device_of(node: ScriptNode, tensor: Any) -> Any:
    """Where a tensor is: the program decides that later."""
    return torch_package().device("cpu")


@operator("prim::layout")
def layout_of(node: ScriptNode, tensor: Any) -> int:
    """Tensors are dense."""
    return 0


@operator(
    "prim::is_cuda", "prim::is_mkldnn", "prim::is_sparse", "prim::is_meta", "prim::is_mps", "prim::is_vulkan"
)
def is_elsewhere(node: ScriptNode, tensor: Any) -> bool:
    """Tensors are dense and on the device of the program."""
    return False


@operator("prim::requires_grad", "prim::is_nested", "aten::is_grad_enabled", "aten::is_autocast_enabled")
def is_false(node: ScriptNode, *values: Any) -> bool:
    """There are no gradients."""
    return False


@operator("aten::is_autocast_cpu_enabled", "aten::is_scripting", "aten::get_autocast_dtype")
def is_scripting(node: ScriptNode, *values: Any) -> bool:
    """``torch.jit.is_scripting()`` is true in scripted code; autocast is off."""
    return node.op_type == "aten::is_scripting"


@operator("prim::is_quantized")
def is_quantized(node: ScriptNode, tensor: Any) -> bool:
    """True for quantised tensors."""
    return getattr(tensor, "quantization", None) is not None


@operator("aten::is_floating_point")
def is_floating_point(node: ScriptNode, tensor: Any) -> bool:
    """True if the elements are floating-point numbers."""
    return is_floating(node.dtype(node.resolved(tensor)))


@operator("aten::is_complex")
def is_complex(node: ScriptNode, tensor: Any) -> bool:
    """Complex tensors are not supported, so that there are none."""
    return False


@operator("aten::is_contiguous")
def is_contiguous(node: ScriptNode, tensor: Any, *options: Any) -> bool:
    """Tensors of the program are."""
    return True


@operator("aten::dim", "aten::ndimension")
def dim(node: ScriptNode, tensor: Any) -> int:
    """How many dimensions a tensor has."""
    return node.rank(node.resolved(tensor))


@operator("prim::ndim")
def ndim(node: ScriptNode, tensor: Any) -> int:
    """How many dimensions a tensor has."""
    return node.rank(node.resolved(tensor))


@operator("aten::size", "prim::shape", "aten::sym_size")
def size(node: ScriptNode, tensor: Any, axis: Any = None) -> Any:
    """The shape of a tensor, or one dimension of it."""
    data = node.resolved(tensor)
    if axis is None:
        return sizes_of(node, data)
    return size_of(node, data, node.axis_of(int(node.number_of(node.resolved(axis), "dim")), node.rank(data)))


@operator("aten::numel", "prim::numel")
def numel(node: ScriptNode, tensor: Any) -> Any:
    """How many elements a tensor has."""
    return multiplied(sizes_of(node, node.resolved(tensor)))


@operator("aten::len.Tensor")
def length_of_tensor(node: ScriptNode, tensor: Any) -> Any:
    """The first dimension."""
    return size_of(node, node.resolved(tensor), 0)


@operator("aten::element_size")
def element_size(node: ScriptNode, tensor: Any) -> int:
    """Bytes of an element."""
    return np.dtype(node.dtype(node.resolved(tensor))).itemsize


@operator("aten::stride")
def stride(node: ScriptNode, tensor: Any, axis: Any = None) -> Any:
    """How far apart elements lie: rows after rows."""
    sizes = sizes_of(node, node.resolved(tensor))
    strides = [multiplied(sizes[place + 1 :]) for place in range(len(sizes))]
    return strides if axis is None else strides[int(axis)]


# Tensors from numbers


@operator("prim::NumToTensor")
def number_to_tensor(node: ScriptNode, number: Any) -> Any:
    """A number as a tensor without dimensions."""
    if isinstance(number, Tensor):
        expr = node.store.read(number)
        # A tensor decides on element types as numbers do not: it is another expression.
        return relay.reshape(expr, ()) if expr in node.scope.numbers else expr
    return node.tensor(number) if not isinstance(number, float) else const(number, node.scope.default_dtype)


@operator("aten::tensor", "aten::as_tensor", "aten::scalar_tensor")
def tensor(node: ScriptNode, data: Any, dtype: Any = None, *options: Any) -> Any:
    """Numbers, perhaps nested in lists, as a tensor."""
    if isinstance(data, Tensor) and not data.number:
        found = node.resolved(data)
        return found if dtype is None else node.cast(found, dtype_name(dtype))
    values = node.resolved(data)
    kind = dtype_name(dtype) if dtype is not None else _common_dtype(node, values)
    return _stacked(node, values, kind)


def _common_dtype(node: ScriptNode, values: Any) -> str:
    flat: list[Any] = []
    pending = [values]
    while pending:
        value = pending.pop()
        if isinstance(value, (list, tuple)):
            pending += value
        else:
            flat.append(value)
    return node.result_dtype(*flat) if flat else node.scope.default_dtype


def _stacked(node: ScriptNode, values: Any, dtype: str) -> Any:
    if not isinstance(values, (list, tuple)):
        return node.cast(values, dtype)
    try:
        return const(np.asarray(values, dtype), dtype)
    except (TypeError, ValueError):
        return relay.stack([_stacked(node, value, dtype) for value in values], 0)


@operator("aten::item", "aten::_local_scalar_dense", "prim::TolistScalar")
def item(node: ScriptNode, value: Any) -> Any:
    """The number in a tensor of one element."""
    data = node.resolved(value)
    return relay.reshape(data, ()) if node.rank(data) or data not in node.scope.numbers else data


@operator("prim::tolist")
def tolist(node: ScriptNode, value: Any, *options: Any) -> Any:
    """A tensor that is known as nested lists of numbers."""
    found = node.required_value(node.resolved(value), "the tensor that becomes a list").tolist()
    return _nested(node, found)


def _nested(node: ScriptNode, value: Any) -> Any:
    return node.store.list_of([_nested(node, each) for each in value]) if isinstance(value, list) else value


@operator("prim::ConstantChunk")
def constant_chunk(node: ScriptNode, value: Any) -> Any:
    """Parts of equal size along an axis."""
    data = node.resolved(value)
    axis, count = int(node.torch_node.i("dim")), int(node.torch_node.i("chunks"))
    extent = node.static_shape(data)[axis]
    each = -(-extent // count)
    return [
        relay.strided_slice(data, [begin], [min(begin + each, extent)], [1], axes=[axis % node.rank(data)])
        for begin in range(0, extent, each)
    ]
