"""TVM's ``PyTorchOpConverter``: conversions of PyTorch's operators as methods of their inputs by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright import relay
from tilewright.compat import frontend_common
from tilewright.compat.torch.binding import call_operator
from tilewright.compat.torch.blocks import Blocks
from tilewright.compat.torch.operators import OPERATORS, OperatorMethods
from tilewright.compat.torch.recurrent import RecurrentLayers
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.torch.node import Scope, TorchNode
from tilewright.relay.frontend.torch.registry import converted_names, find_converter
from tilewright.support.errors import OpNotImplemented

Inputs = Sequence[Any]
Types = Sequence[str]
Conversion = Callable[[Inputs, Types], Any]

_PADS = {"constant": "constant_pad_nd", "reflect": "reflection_pad", "edge": "replication_pad"}
_UPSAMPLES = {"nearest_neighbor": "nearest", "linear": "bilinear", "cubic": "bicubic"}


class PyTorchOpConverter(OperatorMethods, RecurrentLayers, Blocks):
    """Converts operators: ``convert_map["aten::relu"](inputs, input_types)``.

    Inputs are the arguments of PyTorch's schemas by position, expressions or Python's values; the types of tensors are
    those of the expressions. ``prelude`` has the module in which functions are.
    """

    def __init__(self, prelude: Any, default_dtype: str) -> None:
        self.prelude = prelude
        self.default_dtype = default_dtype
        self.types: dict[Any, Any] = {}
        self.scope = Scope(prelude.mod if prelude is not None else IRModule(), default_dtype)
        self.convert_map: dict[str, Conversion] = {}
        self.create_convert_map()

    # Types and shapes

    def infer_type(self, node: Any, mod: IRModule | None = None) -> Any:
        """The type of an expression."""
        return frontend_common.infer_type(node, mod or self.scope.module).checked_type

    def infer_type_with_prelude(self, val: Any) -> Any:
        """The type of an expression that may use the prelude."""
        return self.infer_type(val, self.scope.module)

    def infer_shape(self, inputs: Any, mod: IRModule | None = None) -> Any:
        """The shape of an expression."""
        return frontend_common.infer_shape(inputs, mod or self.scope.module)

    def infer_shape_with_prelude(self, inputs: Any) -> Any:
        """The shape of an expression that may use the prelude."""
        return self.infer_shape(inputs, self.scope.module)

    def record_output_type(self, output: Any) -> None:
        """Note the types of one or several results."""
        for one in output if isinstance(output, (list, tuple)) else [output]:
            if isinstance(one, RelayExpr):
                self.types[one] = self.infer_type_with_prelude(one)

    def pytorch_promote_types(self, inputs: Inputs, dtypes: Types) -> list[Any]:
        """Operands in their common type, as ``torch.result_type`` has it."""
        return list(self._node("promote").promoted(*inputs))

    def is_quantized_tensor(self, data: Any) -> bool:
        """True if a tensor's elements are integers of 8 bits, as quantised ones are."""
        return isinstance(data, RelayExpr) and str(self.infer_type(data).dtype) in ("int8", "uint8")

    def _node(self, name: str) -> TorchNode:
        return TorchNode(f"aten::{name}", name, self.scope)

    # Families of operators

    def make_elemwise(self, name: str) -> Conversion:
        """A conversion of two operands, which are brought to one type; ``name`` is Relay's."""
        operator = frontend_common.get_relay_op(name)

        def converted(inputs: Inputs, input_types: Types) -> Any:
            return operator(*self.pytorch_promote_types(inputs[:2], input_types[:2]))

        return converted

    def make_unary(self, name: str) -> Conversion:
        """A conversion of one operand, whole numbers as floating-point ones; ``name`` is Relay's."""
        operator = frontend_common.get_relay_op(name)

        def converted(inputs: Inputs, input_types: Types) -> Any:
            return operator(self._node(name).floating(inputs[0]))

        return converted

    def make_reduce(self, name: str) -> Conversion:
        """A conversion of a reduction: data, the axes (all without), and whether they stay as ones."""

        def converted(inputs: Inputs, input_types: Types) -> Any:
            given = list(inputs[1:3])
            axes = [int(given[0])] if given and isinstance(given[0], int) else given[0] if given else None
            return frontend_common.get_relay_op(name)(
                inputs[0], axis=axes or None, keepdims=bool(given[1]) if len(given) > 1 else False
            )

        return converted

    def make_avg_pool(self, dim: int) -> Conversion:
        """A conversion of average pooling over so many axes."""
        return self._conversion(f"aten::avg_pool{dim}d")

    def make_pad(self, mode: str) -> Conversion:
        """A conversion of padding: "constant", "reflect" or "edge"."""

        def converted(inputs: Inputs, input_types: Types) -> Any:
            axes = len(inputs[1]) // 2
            suffix = "" if mode == "constant" else f"{axes}d"
            return call_operator(self.scope, f"aten::{_PADS[mode]}{suffix}", inputs)

        return converted

    def make_upsample(self, method: str) -> Conversion:
        """A conversion of images in another size: "nearest_neighbor", "linear" or "cubic"."""
        return self._conversion(f"aten::upsample_{_UPSAMPLES[method]}2d")

    def make_upsample3d(self, method: str) -> Conversion:
        """A conversion of volumes in another size: "nearest_neighbor" or "linear"."""
        return self._conversion(
            "aten::upsample_nearest3d" if method == "nearest_neighbor" else "aten::upsample_trilinear3d"
        )

    def get_upsample_out_size(self, inputs: Inputs, method: str) -> list[int]:
        """The sizes of the axes of space after an upsampling: those that are given, or by the factors at the end."""
        if inputs[1] is not None:
            return [int(one) for one in inputs[1]]
        factors = [float(one) for one in inputs[-1]]
        extents = self.infer_shape(inputs[0])[2:]
        return [int(extent * factor) for extent, factor in zip(extents, factors, strict=True)]

    def adaptive_avg_pool(self, op: Callable[..., Any], inputs: Inputs, input_types: Types) -> Any:
        """The averages of as many regions as asked for; ``op`` is Relay's operator."""
        return op(inputs[0], output_size=self.convert_const_list(inputs[1]))

    def adaptive_max_pool(self, op: Callable[..., Any], inputs: Inputs, input_types: Types) -> Any:
        """The greatest elements of as many regions as asked for; indices are not computed."""
        return op(inputs[0], output_size=self.convert_const_list(inputs[1])), None

    def min_max_common(self, name_elemwise: str, name_reduce: str, inputs: Inputs, input_types: Types) -> Any:
        """Of one tensor, its extreme element; of two, the extremes by element; along an axis, extremes and places."""
        if len(inputs) == 1:
            return frontend_common.get_relay_op(name_reduce)(inputs[0])
        if isinstance(inputs[1], RelayExpr):
            return self.make_elemwise(name_elemwise)(inputs, input_types)
        axis, keep = int(inputs[1]), bool(inputs[2]) if len(inputs) > 2 else False
        places = relay.argmax if name_reduce == "max" else relay.argmin
        reduce = frontend_common.get_relay_op(name_reduce)
        return reduce(inputs[0], axis=axis, keepdims=keep), places(inputs[0], axis=axis, keepdims=keep)

    def max(self, inputs: Inputs, input_types: Types) -> Any:
        """The maximum of all elements, of two tensors, or along an axis."""
        return self.min_max_common("maximum", "max", inputs, input_types)

    def min(self, inputs: Inputs, input_types: Types) -> Any:
        """The minimum of all elements, of two tensors, or along an axis."""
        return self.min_max_common("minimum", "min", inputs, input_types)

    def all_any_common(self, op: Callable[..., Any], inputs: Inputs, input_types: Types) -> Any:
        """Whether all or any elements hold, of all or along an axis; ``op`` is Relay's operator."""
        if len(inputs) >= 2:
            return op(inputs[0], axis=inputs[1], keepdims=bool(inputs[2]) if len(inputs) > 2 else False)
        return op(inputs[0])

    def searchsorted_common(self, sorted_sequence: Any, values: Any, out_int32: bool, right: bool) -> Any:
        """Where values would be inserted into a sorted sequence."""
        dtype = "int32" if out_int32 else "int64"
        scalar = not self.infer_shape(values)
        found = relay.searchsorted(
            sorted_sequence, relay.expand_dims(values, 0) if scalar else values, right=right, dtype=dtype
        )
        return relay.squeeze(found, [0]) if scalar else found

    def full_impl(self, data: Any, fill_value: Any, dtype: str) -> Any:
        """A tensor of sizes, some of which may be computed, filled with a number."""
        value = fill_value if isinstance(fill_value, RelayExpr) else const(fill_value, dtype)
        sizes = data if isinstance(data, RelayExpr) else self._sizes(data)
        return relay.full(relay.cast(value, dtype), sizes, dtype)

    def _sizes(self, data: Sequence[Any]) -> Any:
        if all(isinstance(one, int) for one in data):
            return tuple(data)
        scalars = [
            relay.cast(one, "int64") if isinstance(one, RelayExpr) else const(one, "int64") for one in data
        ]
        return relay.stack([relay.reshape(one, ()) for one in scalars], 0)

    # Numbers and lists

    def convert_const_list(self, data: Any) -> list[int]:
        """Numbers that are known, as Python's."""
        items = data if isinstance(data, (list, tuple)) else list(data.data.numpy())
        return [int(one.data.numpy()) if isinstance(one, Constant) else int(one) for one in items]

    def get_dims(self, data: Any) -> Any:
        """The shape of a tensor."""
        return self.infer_shape(data)

    def size(self, inputs: Inputs, input_types: Types) -> Any:
        """All sizes, or one: numbers where they are known, else expressions."""
        shape = self.infer_shape_with_prelude(inputs[0])
        sizes = [
            int(extent)
            if isinstance(extent, int)
            else relay.take(relay.shape_of(inputs[0], "int64"), const(axis), axis=0)
            for axis, extent in enumerate(shape)
        ]
        return sizes if len(inputs) < 2 or inputs[1] is None else sizes[int(inputs[1])]

    def numtotensor(self, inputs: Inputs, input_types: Types) -> Any:
        """A number as a tensor."""
        given = inputs[0]
        return given if isinstance(given, RelayExpr) else self._node("number").tensor(given)

    def tensortonum(self, inputs: Inputs, input_types: Types) -> Any:
        """The element of a tensor of one, as a scalar."""
        return inputs[0] if not self.infer_shape(inputs[0]) else relay.reshape(inputs[0], ())

    def int(self, inputs: Inputs, input_types: Types) -> Any:
        """A number as a whole one."""
        given = inputs[0]
        return relay.cast(given, "int64") if isinstance(given, RelayExpr) else int(given)

    def Bool(self, inputs: Inputs, input_types: Types) -> Any:
        """The only input, as a truth value where it is known."""
        (given,) = inputs
        return given if isinstance(given, RelayExpr) else bool(given)

    def Float(self, inputs: Inputs, input_types: Types) -> Any:
        """The only input, as a floating-point number."""
        (given,) = inputs
        return relay.cast(given, "float32") if isinstance(given, RelayExpr) else float(given)

    def identity(self, inputs: Inputs, input_types: Types) -> Any:
        """The input."""
        return inputs[0]

    def none(self, inputs: Inputs, input_types: Types) -> None:
        """Nothing: of operators that have no result."""
        return

    def list_getitem(self, inputs: Inputs, input_types: Types) -> Any:
        """An element of a list."""
        return inputs[0][int(inputs[1])]

    def list_len(self, inputs: Inputs, input_types: Types) -> Any:
        """The length of a list."""
        return len(inputs[0])

    def convert_to_list_adt(self, py_lst: Iterable[Any]) -> Any:
        """A list of the prelude with these elements."""
        _, cons, nil = self.prelude.mod.get_type("List")
        made = nil()
        for element in reversed(list(py_lst)):
            made = cons(element, made)
        return made

    def nonzero(self, inputs: Inputs, input_types: Types, is_numpy_style: bool = False) -> Any:
        """Where elements are not zero: a row of coordinates each, or a tensor for each axis."""
        name = "nonzero_numpy" if is_numpy_style else "nonzero"
        return call_operator(self.scope, f"aten::{name}", inputs)

    # Tables

    def _conversion(self, operator: str) -> Conversion:
        def converted(inputs: Inputs, input_types: Types) -> Any:
            return call_operator(self.scope, operator, inputs)

        return converted

    def create_convert_map(self) -> None:
        """Fill ``convert_map``: a conversion for each operator, with the methods of this class where there are any."""
        self.convert_map = {
            name: self._conversion(name) for name in converted_names() if "." not in name.partition("::")[2]
        }
        self.convert_map |= {operator: getattr(self, name) for name, operator in OPERATORS.items()}
        self.convert_map |= {
            "aten::Bool": self.Bool,
            "aten::Float": self.Float,
            "aten::Int": self.int,
            "aten::__getitem__": self.list_getitem,
            "aten::len": self.list_len,
            "aten::max": self.max,
            "aten::min": self.min,
            "aten::nonzero": self.nonzero,
            "aten::size": self.size,
            "prim::NumToTensor": self.numtotensor,
        }

    def update_convert_map(self, custom_map: Mapping[str, Conversion]) -> None:
        """Add conversions of one's own, which win."""
        self.convert_map.update(custom_map)

    def report_missing_conversion(self, op_names: Iterable[str]) -> None:
        """One error for all names that have no conversion; ``prim`` operators are not counted."""
        missing = sorted(
            name
            for name in op_names
            if name not in self.convert_map and not name.startswith("prim::") and find_converter(name) is None
        )
        if missing:
            raise OpNotImplemented(f"The following operators are not implemented: {missing}")
