"""Arrays of tensors as lists of values of a data type: one type per element type, one constructor per rank.

For ``float32``, ``tensor_float32_t`` has the constructors ``tensor_nil_float32`` (not written yet) and
``tensor0_float32`` to ``tensor6_float32``. A tensor array is a list of such values. The functions are written in the
text form and added to the prelude's module; a function that the module already has is not replaced.
"""

from __future__ import annotations

from typing import Any, Protocol

from tilewright.ir.adt import Constructor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.type import GlobalTypeVar
from tilewright.relay.parser import add_definitions
from tilewright.support.errors import TilewrightError

HIGHEST_RANK = 6
HIGHEST_CONCATENATED = 4


ELEMENT_TYPES = (
    "float32",
    "float16",
    "float64",
    "int32",
    "int64",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)
"""Those that tensor arrays are made of."""


class HasModule(Protocol):
    """The interface of the prelude for tensor arrays: a module with lists."""

    mod: IRModule


def dynamic_name(canonical: str, dtype: str) -> str:
    """The name of a type, constructor or function for an element type."""
    return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"


def constructor_named(module: IRModule, type_name: str, name: str) -> Constructor:
    """A constructor of a type of the module."""
    for constructor in module.get_type(type_name)[1:]:
        if constructor.name_hint == name:
            found: Constructor = constructor
            return found
    raise TilewrightError(f"the type {type_name} has no constructor {name}")


def tensor_text(rank: int, dtype: str) -> str:
    """The type of a tensor of which only the rank is known."""
    return dtype if rank == 0 else f"Tensor[({', '.join(['?'] * rank)}), {dtype}]"


def list_functions(name: Any, tensor: str, nil: str) -> dict[str, str]:
    """The functions that treat a tensor array as a list, and do not look into its tensors. ``name`` gives the full name
    of a function."""
    array = f"List[{tensor}[]]"
    return {
        "tensor_array": f"""
def @{name("tensor_array")}(%size: int32) -> {array} {{
  if (%size == 0) {{ Nil }} else {{ Cons({nil}, @{name("tensor_array")}(%size - 1)) }}
}}""",
        "tensor_array_read": f"""
def @{name("tensor_array_read")}(%array: {array}, %n: int32) -> {tensor}[] {{
  @nth(%array, %n)
}}""",
        "tensor_array_write": f"""
def @{name("tensor_array_write")}(%array: {array}, %n: int32, %value: {tensor}[]) -> {array} {{
  @update(%array, %n, %value)
}}""",
    }


def scatter_text(name: Any, tensor: str, indices: str) -> str:
    """``values[i]`` is written at ``indices[i]``, for each i."""
    array = f"List[{tensor}[]]"
    scatter, write, read = (
        name("tensor_array_scatter"),
        name("tensor_array_write"),
        name("tensor_array_read"),
    )
    return f"""
def @{scatter}_from(
  %array: {array}, %current: int32, %limit: int32, %indices: {indices}, %values: {array}
) -> {array} {{
  if (%current == %limit) {{
    %array
  }} else {{
    @{scatter}_from(
      @{write}(%array, take(%indices, %current, axis=0), @{read}(%values, %current)),
      %current + 1, %limit, %indices, %values)
  }}
}}

def @{scatter}(%array: {array}, %indices: {indices}, %values: {array}) -> {array} {{
  @{scatter}_from(%array, 0, take(shape_of(%indices, dtype="int32"), 0, axis=0), %indices, %values)
}}"""


def split_text(name: Any, tensor: str, value: str, taken: str, lengths: str) -> str:
    """Pieces of ``value`` of the given lengths are written from the first place on. ``taken`` is the function that
    takes a piece."""
    array = f"List[{tensor}[]]"
    split, write = name("tensor_array_split"), name("tensor_array_write")
    return f"""
def @{split}_from(
  %array: {array}, %value: {value}[], %offset: int32, %current: int32, %limit: int32, %lengths: {lengths}
) -> {array} {{
  if (%current == %limit) {{
    %array
  }} else {{
    let %end = %offset + take(%lengths, %current, axis=0);
    @{write}(
      @{split}_from(%array, %value, %end, %current + 1, %limit, %lengths),
      %current, @{taken}(%value, %offset, %end))
  }}
}}

def @{split}(%array: {array}, %value: {value}[], %lengths: {lengths}) -> {array} {{
  @{split}_from(%array, %value, 0, 0, take(shape_of(%lengths, dtype="int32"), 0, axis=0), %lengths)
}}"""


def gather_text(name: Any, tensor: str, result: str, indices: str) -> str:
    """The tensors at ``indices``, stacked."""
    array = f"List[{tensor}[]]"
    gather, read, stack = (
        name("tensor_array_gather"),
        name("tensor_array_read"),
        name("tensor_array_stack"),
    )
    return f"""
def @{gather}_onto(%array: {array}, %found: {array}, %current: int32, %indices: {indices}) -> {result}[] {{
  if (%current == 0) {{
    @{stack}(%found)
  }} else {{
    let %before = %current - 1;
    @{gather}_onto(
      %array, Cons(@{read}(%array, take(%indices, %before, axis=0)), %found), %before, %indices)
  }}
}}

def @{gather}(%array: {array}, %indices: {indices}) -> {result}[] {{
  @{gather}_onto(%array, Nil, take(shape_of(%indices, dtype="int32"), 0, axis=0), %indices)
}}"""


class TensorArrayOps:
    """The data type and functions of tensor arrays for one element type, in the module of a prelude."""

    def __init__(self, prelude: HasModule, dtype: str) -> None:
        self.prelude = prelude
        self.dtype = dtype

    def get_name(self, canonical: str) -> str:
        """The full name of a type, constructor or function."""
        return dynamic_name(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """A function by its short name."""
        return self.prelude.mod.get_global_var(self.get_name(canonical))

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """A type by its short name."""
        return self.prelude.mod.get_global_type_var(self.get_name(canonical))

    def get_ctor(self, canonical: str) -> Constructor:
        """A constructor of the tensor type by its short name."""
        return constructor_named(self.prelude.mod, self.get_name("tensor_t"), self.get_name(canonical))

    def _define(self, text: str) -> None:
        add_definitions(self.prelude.mod, text, f"tensor_array_{self.dtype}")

    def _list_function(self, canonical: str) -> None:
        self._define(
            list_functions(self.get_name, self.get_name("tensor_t"), self.get_name("tensor_nil"))[canonical]
        )

    def _by_rank(self, name: str, ranks: range, result: str, parameters: str = "") -> None:
        """A function of one tensor by cases of its rank; ``result`` has {rank} and {next} for ranks."""
        clauses = "".join(
            f"    {self.get_name(f'tensor{rank}')}(%t) => {{ {result.format(rank=rank, next=rank + 1)} }},\n"
            for rank in ranks
        )
        tensor = self.get_name("tensor_t")
        self._define(
            f"""
def @{self.get_name(name)}(%tensor: {tensor}[]{parameters}) -> {tensor}[] {{
  match? (%tensor) {{
{clauses}  }}
}}"""
        )

    def define_tensor_adt(self) -> None:
        """The type, with a constructor for each rank."""
        self._define(self.adt_text())

    def adt_text(self) -> str:
        """The definition of the type."""
        constructors = "".join(
            f"  {self.get_name(f'tensor{rank}')}({tensor_text(rank, self.dtype)}),\n"
            for rank in range(HIGHEST_RANK + 1)
        )
        return f"type {self.get_name('tensor_t')} {{\n  {self.get_name('tensor_nil')},\n{constructors}}}\n"

    def define_tensor_take(self) -> None:
        """The part of a tensor from one place of its first axis to before another."""
        self._by_rank(
            "tensor_take",
            range(1, HIGHEST_RANK + 1),
            f'tensor{{rank}}_{self.dtype}(take(%t, arange(%lower, %upper, 1, dtype="int32"), axis=0))',
            ", %lower: int32, %upper: int32",
        )

    def define_tensor_expand_dims(self) -> None:
        """A tensor with one more axis, in front."""
        self._by_rank(
            "tensor_expand_dims", range(HIGHEST_RANK), f"tensor{{next}}_{self.dtype}(expand_dims(%t, axis=0))"
        )

    def define_tensor_concat(self) -> None:
        """Two tensors of one rank, one behind the other along the first axis."""
        tensor = self.get_name("tensor_t")
        clauses = []
        for rank in range(1, HIGHEST_CONCATENATED + 1):
            constructor = self.get_name(f"tensor{rank}")
            clauses.append(
                f"    ({constructor}(%a), {constructor}(%b)) => {{ {constructor}(concatenate((%a, %b), axis=0)) }},\n"
            )
        self._define(
            f"""
def @{self.get_name("tensor_concatenate")}(%x: {tensor}[], %y: {tensor}[]) -> {tensor}[] {{
  match? ((%x, %y)) {{
{"".join(clauses)}  }}
}}"""
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

    def _define_unstack(self, rank: int) -> None:
        """The parts of a tensor along its first axis."""
        name, array = (
            self.get_name(f"tensor_array_unstack_tensor{rank}"),
            f"List[{self.get_name('tensor_t')}[]]",
        )
        tensor = tensor_text(rank, self.dtype)
        part = self.get_name(f"tensor{rank - 1}")
        self._define(
            f"""
def @{name}_from(%current: int32, %limit: int32, %tensor: {tensor}) -> {array} {{
  if (%current == %limit) {{
    Nil
  }} else {{
    Cons({part}(take(%tensor, %current, axis=0)), @{name}_from(%current + 1, %limit, %tensor))
  }}
}}

def @{name}(%tensor: {tensor}) -> {array} {{
  @{name}_from(0, take(shape_of(%tensor, dtype="int32"), 0, axis=0), %tensor)
}}"""
        )

    def define_tensor_array_unstack_tensor1(self) -> None:
        """An array from the elements of a vector."""
        self._define_unstack(1)

    def define_tensor_array_unstack_tensor2(self) -> None:
        """An array from the rows of a matrix."""
        self._define_unstack(2)

    def define_tensor_array_unstack_tensor3(self) -> None:
        """An array from the parts of a tensor of rank 3."""
        self._define_unstack(3)

    def define_tensor_array_unstack_tensor4(self) -> None:
        """An array from the parts of a tensor of rank 4."""
        self._define_unstack(4)

    def define_tensor_array_unstack_tensor5(self) -> None:
        """An array from the parts of a tensor of rank 5."""
        self._define_unstack(5)

    def define_tensor_array_unstack_tensor6(self) -> None:
        """An array from the parts of a tensor of rank 6."""
        self._define_unstack(6)

    def define_tensor_array_scatter(self) -> None:
        """The array with several tensors put at places."""
        self._define(scatter_text(self.get_name, self.get_name("tensor_t"), "Tensor[(?), int32]"))

    def define_tensor_array_split(self) -> None:
        """The array with the pieces of a tensor written from the first place on."""
        tensor = self.get_name("tensor_t")
        taken = self.get_name("tensor_take")
        self._define(split_text(self.get_name, tensor, tensor, taken, "Tensor[(?), int32]"))

    def define_tensor_array_concat(self) -> None:
        """All tensors, one behind the other."""
        name, tensor = self.get_name("tensor_array_concat"), self.get_name("tensor_t")
        self._define(
            f"""
def @{name}(%array: List[{tensor}[]]) -> {tensor}[] {{
  @foldr1(@{self.get_name("tensor_concatenate")}, %array)
}}"""
        )

    def define_tensor_array_gather(self) -> None:
        """The tensors at several places, stacked."""
        tensor = self.get_name("tensor_t")
        self._define(gather_text(self.get_name, tensor, tensor, "Tensor[(?), int32]"))

    def define_tensor_array_stack(self) -> None:
        """All tensors along a new first axis."""
        tensor = self.get_name("tensor_t")
        self._define(
            f"""
def @{self.get_name("tensor_array_stack")}(%array: List[{tensor}[]]) -> {tensor}[] {{
  let %rows = @map(@{self.get_name("tensor_expand_dims")}, %array);
  @foldl(@{self.get_name("tensor_concatenate")}, @hd(%rows), @tl(%rows))
}}"""
        )

    def register(self) -> None:
        """Define all, and the types of tensors of other elements, which programs that look at results ask for in the
        module."""
        self.define_tensor_adt()
        define_types(self.prelude)
        self.define_tensor_take()
        self.define_tensor_expand_dims()
        self.define_tensor_concat()
        self.define_tensor_array()
        self.define_tensor_array_read()
        self.define_tensor_array_write()
        for rank in range(1, HIGHEST_RANK + 1):
            self._define_unstack(rank)
        self.define_tensor_array_scatter()
        self.define_tensor_array_split()
        self.define_tensor_array_concat()
        self.define_tensor_array_stack()
        self.define_tensor_array_gather()


def define_types(prelude: HasModule) -> None:
    """Define the types of tensors of any rank, for all types of elements."""
    known = {variable.name_hint for variable in prelude.mod.type_definitions}
    every = [TensorArrayOps(prelude, dtype) for dtype in ELEMENT_TYPES]
    text = "".join(each.adt_text() for each in every if each.get_name("tensor_t") not in known)
    if text:
        add_definitions(prelude.mod, text, "tensor_array")
