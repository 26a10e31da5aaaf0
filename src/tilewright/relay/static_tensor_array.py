"""Arrays of tensors of one known shape: a data type per element type and shape, so that shapes are checked.

The type for ``float32`` and ``(2, 3)`` is ``static_tensor_float32_2_3_t``. Results whose first axis depends on data
(stack, concat, take) have the type whose first dimension is unknown, ``static_tensor_float32_any_3_t``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import GlobalTypeVar, TypeCall
from tilewright.relay.infer import type_of
from tilewright.relay.parser import add_definitions
from tilewright.relay.tensor_array import (
    HasModule,
    constructor_named,
    define_types,
    gather_text,
    list_functions,
    scatter_text,
    split_text,
)
from tilewright.support.errors import TilewrightError

_WITHOUT_BATCH = ("tensor_constructor", "tensor_nil", "tensor_t")


def _shape_words(shape: Sequence[Any]) -> str:
    """A shape in a name."""
    return "_".join("any" if isinstance(extent, UnknownDimension) else str(extent) for extent in shape)


def static_name(
    canonical: str,
    dtype: str,
    shape: Sequence[Any],
    batch_dim: int | None = None,
    extra_shapes: Mapping[str, Sequence[Any]] | None = None,
) -> str:
    """The name of a type, constructor or function for an element type and shape. ``extra_shapes`` are shapes of other
    parameters that a function is made for."""
    words = _shape_words(shape)
    for name, extra in (extra_shapes or {}).items():
        words += f"_{name}_{_shape_words(extra)}"
    words = words or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{words}_t"
    if batch_dim == 1 and canonical not in _WITHOUT_BATCH:
        return f"{canonical}_{dtype}_batch{batch_dim}_{words}"
    return f"{canonical}_{dtype}_{words}"


def _type_text(shape: Sequence[Any], dtype: str) -> str:
    extents = ", ".join("?" if isinstance(extent, UnknownDimension) else str(extent) for extent in shape)
    return f"Tensor[({extents}), {dtype}]"


class StaticTensorArrayOps:
    """The data type and functions of tensor arrays for one element type and shape, in the module of a prelude."""

    def __init__(
        self, prelude: HasModule, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.shape: tuple[Any, ...] = tuple(
            extent.value if isinstance(extent, IntImm) else extent for extent in shape
        )
        self.batch_dim = batch_dim

    def get_name(self, canonical: str) -> str:
        """The full name of a type, constructor or function."""
        return static_name(canonical, self.dtype, self.shape, self.batch_dim)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """A function by its short name."""
        return self.prelude.mod.get_global_var(self.get_name(canonical))

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """A type by its short name."""
        return self.prelude.mod.get_global_type_var(self.get_name(canonical))

    def get_ctor(self, canonical: str) -> Constructor:
        """A constructor of the tensor type by its short name."""
        return constructor_named(self.prelude.mod, self.get_name("tensor_t"), self.get_name(canonical))

    def is_cached(self, name: str) -> bool:
        """True if the module has a function of this full name."""
        return name in self.prelude.mod

    def _define(self, text: str) -> None:
        add_definitions(
            self.prelude.mod, text, f"static_tensor_array_{self.dtype}_{_shape_words(self.shape) or 'scalar'}"
        )

    def _of_shape(self, shape: Sequence[Any]) -> StaticTensorArrayOps:
        """The type of tensors of another shape, which is defined if need be."""
        other = StaticTensorArrayOps(self.prelude, self.dtype, shape, self.batch_dim)
        other.define_tensor_adt()
        return other

    def _first_unknown(self) -> StaticTensorArrayOps:
        """The type of tensors that differ along the first axis."""
        self._require_axis()
        return self._of_shape((UnknownDimension(), *self.shape[1:]))

    def _require_axis(self) -> None:
        if not self.shape:
            raise TilewrightError("tensors without dimensions have no first axis")

    def define_tensor_adt(self) -> None:
        """The type: a tensor of the shape, or nothing."""
        name = self.get_name("tensor_t")
        if any(variable.name_hint == name for variable in self.prelude.mod.type_definitions):
            return
        tensor = _type_text(self.shape, self.dtype)
        self._define(
            f"type {name} {{\n  {self.get_name('tensor_nil')},\n"
            f"  {self.get_name('tensor_constructor')}({tensor}),\n}}"
        )

    def _list_function(self, canonical: str) -> None:
        self._define(
            list_functions(self.get_name, self.get_name("tensor_t"), self.get_name("tensor_nil"))[canonical]
        )

    def define_tensor_array(self) -> None:
        """An array of a size, nothing written."""
        self._list_function("tensor_array")

    def define_tensor_array_read(self) -> None:
        """The tensor at a place."""
        self._list_function("tensor_array_read")

    def define_tensor_array_write(self) -> None:
        """The array with a tensor put at a place."""
        self._list_function("tensor_array_write")

    def define_tensor_take(self) -> None:
        """The part of a tensor from one place of its first axis to before another."""
        result = self._first_unknown()
        self._define(
            f"""
def @{self.get_name("tensor_take")}(
  %tensor: {self.get_name("tensor_t")}[], %lower: int32, %upper: int32
) -> {result.get_name("tensor_t")}[] {{
  match? (%tensor) {{
    {self.get_name("tensor_constructor")}(%t) => {{
      {result.get_name("tensor_constructor")}(take(%t, arange(%lower, %upper, 1, dtype="int32"), axis=0))
    }},
  }}
}}"""
        )

    def define_tensor_concatenate(self) -> None:
        """Two tensors, one behind the other along the first axis."""
        result = self._first_unknown()
        tensor, constructor = self.get_name("tensor_t"), self.get_name("tensor_constructor")
        self._define(
            f"""
def @{self.get_name("tensor_concatenate")}(%x: {tensor}[], %y: {tensor}[]) -> {result.get_name("tensor_t")}[] {{
  match? ((%x, %y)) {{
    ({constructor}(%a), {constructor}(%b)) => {{
      {result.get_name("tensor_constructor")}(concatenate((%a, %b), axis=0))
    }},
  }}
}}"""
        )

    def define_tensor_expand_dims(self) -> None:
        """A tensor with one more axis in front, of unknown size, so that others can be joined to it."""
        result = self._of_shape((UnknownDimension(), *self.shape))
        self._define(
            f"""
def @{self.get_name("tensor_expand_dims")}(%tensor: {self.get_name("tensor_t")}[]) -> {result.get_name("tensor_t")}[] {{
  match? (%tensor) {{
    {self.get_name("tensor_constructor")}(%t) => {{
      {result.get_name("tensor_constructor")}(expand_dims(%t, axis=0))
    }},
  }}
}}"""
        )

    def define_tensor_array_unstack(self) -> None:
        """An array from the parts of a tensor along its first axis."""
        self._require_axis()
        part = self._of_shape(self.shape[1:])
        name, array = self.get_name("tensor_array_unstack"), f"List[{part.get_name('tensor_t')}[]]"
        tensor = _type_text(self.shape, self.dtype)
        known = not isinstance(self.shape[0], UnknownDimension)
        limit = str(self.shape[0]) if known else 'take(shape_of(%tensor, dtype="int32"), 0, axis=0)'
        self._define(
            f"""
def @{name}_from(%current: int32, %limit: int32, %tensor: {tensor}) -> {array} {{
  if (%current == %limit) {{
    Nil
  }} else {{
    Cons(
      {part.get_name("tensor_constructor")}(take(%tensor, %current, axis=0)),
      @{name}_from(%current + 1, %limit, %tensor))
  }}
}}

def @{name}(%tensor: {tensor}) -> {array} {{
  @{name}_from(0, {limit}, %tensor)
}}"""
        )

    def _redefine(self, names: Sequence[str], text: str, force_update: bool) -> None:
        """Define functions; existing ones are redefined only on request."""
        if force_update:
            for name in names:
                if self.is_cached(name):
                    del self.prelude.mod[name]
        self._define(text)

    def define_tensor_array_scatter(
        self, indices_shape: Sequence[Any] | None = None, force_update: bool = False
    ) -> None:
        """The array with several tensors put at places."""
        indices = _type_text(indices_shape or (UnknownDimension(),), "int32")
        name = self.get_name("tensor_array_scatter")
        text = scatter_text(self.get_name, self.get_name("tensor_t"), indices)
        self._redefine((name, f"{name}_from"), text, force_update)

    def define_tensor_array_split(
        self,
        value_shape: Sequence[Any] | None = None,
        lengths_shape: Sequence[Any] | None = None,
        force_update: bool = False,
    ) -> None:
        """The array, of tensors that differ along the first axis, with the pieces of a tensor written from the first
        place on."""
        pieces = self._first_unknown()
        value = self._of_shape(value_shape or self.shape)
        if value.shape[1:] != pieces.shape[1:] and _shape_words(value.shape[1:]) != _shape_words(
            pieces.shape[1:]
        ):
            raise TilewrightError(
                f"pieces of a tensor of shape ({_shape_words(value.shape)}) do not fit an array of shape "
                f"({_shape_words(pieces.shape)})"
            )
        value.define_tensor_take()
        pieces.define_tensor_array_write()

        def full_name(canonical: str) -> str:
            owner = pieces if canonical == "tensor_array_write" else self
            return owner.get_name(canonical)

        name = self.get_name("tensor_array_split")
        text = split_text(
            full_name,
            pieces.get_name("tensor_t"),
            value.get_name("tensor_t"),
            value.get_name("tensor_take"),
            _type_text(lengths_shape or (UnknownDimension(),), "int32"),
        )
        self._redefine((name, f"{name}_from"), text, force_update)

    def define_tensor_array_concat(self) -> None:
        """All tensors, one behind the other; nothing for an empty array."""
        result = self._first_unknown()
        result.define_tensor_concatenate()
        name, made = self.get_name("tensor_array_concat"), result.get_name("tensor_constructor")
        self._define(
            f"""
def @{name}(%array: List[{self.get_name("tensor_t")}[]]) -> {result.get_name("tensor_t")}[] {{
  match? (%array) {{
    Nil => {{ {result.get_name("tensor_nil")} }},
    Cons({self.get_name("tensor_constructor")}(%t), Nil) => {{ {made}(%t) }},
    Cons({self.get_name("tensor_constructor")}(%t), %rest) => {{
      @{result.get_name("tensor_concatenate")}({made}(%t), @{name}(%rest))
    }},
  }}
}}"""
        )

    def define_tensor_array_stack(self) -> None:
        """All tensors along a new first axis."""
        self.define_tensor_expand_dims()
        result = self._of_shape((UnknownDimension(), *self.shape))
        result.define_tensor_concatenate()
        self._define(
            f"""
def @{self.get_name("tensor_array_stack")}(
  %array: List[{self.get_name("tensor_t")}[]]
) -> {result.get_name("tensor_t")}[] {{
  let %rows = @map(@{self.get_name("tensor_expand_dims")}, %array);
  @foldl(@{result.get_name("tensor_concatenate")}, @hd(%rows), @tl(%rows))
}}"""
        )

    def define_tensor_array_gather(self) -> None:
        """The tensors at several places, stacked."""
        self.define_tensor_array_read()
        self.define_tensor_array_stack()
        result = self._of_shape((UnknownDimension(), *self.shape))
        self._define(
            gather_text(
                self.get_name, self.get_name("tensor_t"), result.get_name("tensor_t"), "Tensor[(?), int32]"
            )
        )

    def define_tensor_get_data(self) -> None:
        """The tensor within a value of the type."""
        tensor = _type_text(self.shape, self.dtype)
        self._define(
            f"""
def @{self.get_name("tensor_get_data")}(%tensor: {self.get_name("tensor_t")}[]) -> {tensor} {{
  match? (%tensor) {{
    {self.get_name("tensor_constructor")}(%t) => {{ %t }},
  }}
}}"""
        )

    def register(self) -> None:
        """Define all that tensors of this rank have, and the types of tensors of any rank, which programs that look at
        results ask for in the module."""
        define_types(self.prelude)
        self.define_tensor_adt()
        self.define_tensor_array()
        self.define_tensor_array_read()
        self.define_tensor_array_write()
        self.define_tensor_array_scatter()
        self.define_tensor_expand_dims()
        self.define_tensor_array_stack()
        self.define_tensor_array_gather()
        self.define_tensor_get_data()
        if self.shape:
            self.define_tensor_take()
            self.define_tensor_concatenate()
            self.define_tensor_array_unstack()
            self.define_tensor_array_split()
            self.define_tensor_array_concat()


def get_tensor_array_shape(expr: Any, dtype: str, prelude: HasModule) -> tuple[Any, ...] | None:
    """The shape of the tensors in a tensor array; None where the array is of tensors of any shape."""
    found = type_of(expr, prelude.mod)
    if not isinstance(found, TypeCall) or not found.args or not isinstance(found.args[0], TypeCall):
        raise TilewrightError(f"an expression of type {found} is not a tensor array")
    header = found.args[0].func
    if not isinstance(header, GlobalTypeVar):
        raise TilewrightError(f"an expression of type {found} is not a tensor array")
    constructors = prelude.mod.type_definitions[header].constructors
    if not header.name_hint.startswith(f"static_tensor_{dtype}_"):
        return None
    tensor = constructors[-1].inputs[0]
    assert isinstance(tensor, TensorType)
    return tuple(extent.value if isinstance(extent, IntImm) else extent for extent in tensor.shape)
