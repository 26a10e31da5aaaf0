"""PaddlePaddle programs: operators with named inputs, outputs and attributes, and tensors with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilewright.relay.frontend.common.protobuf import Message, Schema
from tilewright.support.errors import ModelError

_TYPES: Final = (
    "BOOL=0|INT16=1|INT32=2|INT64=3|FP16=4|FP32=5|FP64=6|LOD_TENSOR=7|SELECTED_ROWS=8|FEED_MINIBATCH=9|FETCH_LIST=10|"
    "STEP_SCOPES=11|LOD_RANK_TABLE=12|LOD_TENSOR_ARRAY=13|PLACE_LIST=14|READER=15|RAW=17|TUPLE=18|SIZE_T=19|UINT8=20|"
    "INT8=21|BF16=22|COMPLEX64=23|COMPLEX128=24|STRING=25|STRINGS=26|VOCAB=27|FEED_LIST=28|PSTRING=29|UINT16=36|"
    "UINT32=37|UINT64=38"
)
SCHEMA: Final = Schema(
    {
        "ProgramDesc": "blocks 1 BlockDesc*, version 4 Version",
        "Version": "version 1 int",
        "BlockDesc": "idx 1 int, parent_idx 2 int, vars 3 VarDesc*, ops 4 OpDesc*",
        "VarDesc": "name 1 string, type 2 VarType, persistable 3 bool",
        "VarType": f"type 1 {_TYPES}, lod_tensor 3 LoDTensorDesc",
        "LoDTensorDesc": "tensor 1 TensorDesc",
        "TensorDesc": f"data_type 1 {_TYPES}, dims 2 int*",
        "OpDesc": "inputs 1 OpVar*, outputs 2 OpVar*, type 3 string, attrs 4 Attr*",
        "OpVar": "parameter 1 string, arguments 2 string*",
        "Attr": (
            "name 1 string, type 2 INT|FLOAT|STRING|INTS|FLOATS|STRINGS|BOOLEAN|BOOLEANS|BLOCK|LONG|BLOCKS|LONGS|"
            "FLOAT64S|VAR|VARS|FLOAT64|SCALAR|SCALARS, i 3 int, f 4 float, s 5 string, ints 6 int*, floats 7 float*, "
            "strings 8 bytes*, b 10 bool, bools 11 bool*, block_idx 12 int, l 13 int, longs 15 int*, "
            "float64s 16 double*, var_name 17 string, vars_name 18 string*, float64 19 double, scalar 20 Scalar, "
            "scalars 21 Scalar*"
        ),
        "Scalar": "type 1 BOOLEAN=1|LONG=2|FLOAT64=3|COMPLEX128=4, b 2 bool, i 3 int, r 4 double",
    }
)
DTYPES: Final[dict[str, str]] = {
    "BOOL": "bool",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "UINT8": "uint8",
    "INT8": "int8",
    "BF16": "bfloat16",
}
"""Element types as this compiler calls them, by PaddlePaddle's names."""
DTYPE_NUMBERS: Final = {
    number: DTYPES[name]
    for number, name in SCHEMA.by_name["TensorDesc"]["data_type"].names.items()  # type: ignore[union-attr]
    if name in DTYPES
}
"""Element types by the numbers that attributes hold."""
_SIMPLE: Final = {
    "INT": "i",
    "FLOAT": "f",
    "STRING": "s",
    "INTS": "ints",
    "FLOATS": "floats",
    "BOOLEAN": "b",
    "BOOLEANS": "bools",
    "BLOCK": "block_idx",
    "LONG": "l",
    "LONGS": "longs",
    "FLOAT64": "float64",
    "FLOAT64S": "float64s",
}
"""The field that holds an attribute, by its kind."""
_SCALARS: Final = {"BOOLEAN": "b", "LONG": "i", "FLOAT64": "r"}


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of a program: an open size is None."""

    dtype: str
    shape: tuple[int | None, ...]
    persistable: bool = False


@dataclass(frozen=True)
class OperatorEntry:
    """An operator of a program. Inputs and outputs are names of tensors by the operator's names for them."""

    operator: str
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What the operator is called in messages: its first result, as PaddlePaddle's operators have no names."""
        return next((one for names in self.outputs.values() for one in names), self.operator)


@dataclass
class Program:
    """A program: its operators in the order in which they run, its tensors, the names of its inputs and results."""

    operators: list[OperatorEntry] = field(default_factory=list)
    tensors: dict[str, TensorEntry] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    version: int = 0

    @property
    def parameters(self) -> list[str]:
        """The tensors that come from the file of parameters, in the order in which that has them."""
        return sorted(name for name, one in self.tensors.items() if one.persistable)


def read_program(content: bytes, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Program:
    """A program from the content of a ``.pdmodel`` file; its inputs and results where it does not say them."""
    try:
        read = SCHEMA.read("ProgramDesc", content)
    except ModelError as error:
        raise ModelError(f"not a PaddlePaddle program: {error}") from error
    if not read.blocks or not read.blocks[0].ops:
        raise ModelError("not a PaddlePaddle program: there are no operators in it")
    program = Program(version=read.version.version)
    main = read.blocks[0]
    for one in main.vars:
        found = _tensor(one)
        if found is not None:
            program.tensors[one.name] = found
    columns: list[tuple[int, str]] = []
    for one in main.ops:
        entry = _operator(one)
        if entry.operator == "feed":
            columns.append((int(entry.attributes.get("col", 0)), entry.outputs["Out"][0]))
        elif entry.operator == "fetch":
            program.outputs.append(entry.inputs["X"][0])
        else:
            program.operators.append(entry)
    program.inputs = [name for _, name in sorted(columns)] or list(inputs)
    program.outputs = program.outputs or list(outputs)
    if not program.outputs:
        raise ModelError("the program has no results: save it for inference (paddle.jit.save)")
    for name in program.inputs:
        if name not in program.tensors:
            raise ModelError(f"the program is damaged: the input {name!r} is not declared")
    return program


def _tensor(one: Message) -> TensorEntry | None:
    if not one.type.has("lod_tensor"):
        return None
    described = one.type.lod_tensor.tensor
    shape = tuple(None if size < 0 else size for size in described.dims)
    return TensorEntry(DTYPES.get(described.data_type, described.data_type.lower()), shape, one.persistable)


def _operator(one: Message) -> OperatorEntry:
    attributes = {
        attribute.name: _value(attribute) for attribute in one.attrs if attribute.name != "op_callstack"
    }
    inputs = {side.parameter: tuple(side.arguments) for side in one.inputs}
    # An attribute that is a tensor is an input in all but name.
    for attribute in one.attrs:
        if attribute.type in ("VAR", "VARS"):
            names = attribute.vars_name if attribute.type == "VARS" else [attribute.var_name]
            inputs.setdefault(attribute.name, tuple(names))
            del attributes[attribute.name]
    outputs = {side.parameter: tuple(side.arguments) for side in one.outputs}
    return OperatorEntry(one.type, inputs, outputs, attributes)


def _value(attribute: Message) -> Any:
    kind = attribute.type
    if kind == "STRINGS":
        return [text.decode(errors="replace") for text in attribute.strings]
    if kind == "SCALAR":
        return getattr(attribute.scalar, _SCALARS.get(attribute.scalar.type, "r"))
    if kind == "SCALARS":
        return [getattr(one, _SCALARS.get(one.type, "r")) for one in attribute.scalars]
    if kind in ("FLOATS", "FLOAT64S"):
        return [float(one) for one in getattr(attribute, _SIMPLE[kind])]
    return getattr(attribute, _SIMPLE[kind]) if kind in _SIMPLE else None
