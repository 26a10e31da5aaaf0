"""Programs as PaddlePaddle 3 saves them: JSON text of its newer IR, whose operators have inputs by their places.

They are read as programs of the older kind. Where the two differ only in names a table says so; the order of the inputs
of a converter (``reads``) is that of the newer operators.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tilewright.relay.frontend.paddle.program import OperatorEntry, Program, TensorEntry
from tilewright.relay.frontend.paddle.registry import find_converter
from tilewright.support.errors import ModelError

MAGIC: Final = b'{"base_code":{"magic":"pir"'
_DTYPES: Final = {
    "t_bool": "bool",
    "t_i8": "int8",
    "t_ui8": "uint8",
    "t_i16": "int16",
    "t_i32": "int32",
    "t_i64": "int64",
    "t_f16": "float16",
    "t_bf16": "bfloat16",
    "t_f32": "float32",
    "t_f64": "float64",
}
_NAMES: Final = {
    "add": "elementwise_add",
    "subtract": "elementwise_sub",
    "multiply": "elementwise_mul",
    "divide": "elementwise_div",
    "maximum": "elementwise_max",
    "minimum": "elementwise_min",
    "fmax": "elementwise_fmax",
    "fmin": "elementwise_fmin",
    "floor_divide": "elementwise_floordiv",
    "remainder": "elementwise_mod",
    "matmul": "matmul_v2",
    "reshape": "reshape2",
    "transpose": "transpose2",
    "squeeze": "squeeze2",
    "unsqueeze": "unsqueeze2",
    "flatten": "flatten_contiguous_range",
    "full": "fill_constant",
    "full_with_tensor": "fill_constant",
    "full_int_array": "assign_value",
    "full_like": "fill_any_like",
    "assign_value_": "assign_value",
    "batch_norm_": "batch_norm",
    "sync_batch_norm_": "sync_batch_norm",
    "argmax": "arg_max",
    "argmin": "arg_min",
    "sum": "reduce_sum",
    "mean": "reduce_mean",
    "max": "reduce_max",
    "min": "reduce_min",
    "prod": "reduce_prod",
    "all": "reduce_all",
    "any": "reduce_any",
    "topk": "top_k_v2",
    "expand": "expand_v2",
    "expand_as": "expand_as_v2",
    "one_hot": "one_hot_v2",
    "arange": "range",
    "isnan": "isnan_v2",
    "isinf": "isinf_v2",
    "isfinite": "isfinite_v2",
    "hardswish": "hard_swish",
    "hardsigmoid": "hard_sigmoid",
    "hardtanh": "brelu",
    "bilinear_interp": "bilinear_interp_v2",
    "nearest_interp": "nearest_interp_v2",
    "bicubic_interp": "bicubic_interp_v2",
    "linear_interp": "linear_interp_v2",
    "trilinear_interp": "trilinear_interp_v2",
    "split_with_num": "split",
    "tril": "tril_triu",
    "triu": "tril_triu",
    "nonzero": "where_index",
    "uniform": "uniform_random",
    "gaussian": "gaussian_random",
    "shape64": "shape",
    "numel": "size",
    "grid_sample": "grid_sampler",
    "embedding": "lookup_table_v2",
    "diag": "diag_v2",
    "crop": "crop_tensor",
    "add_n": "sum",
}
"""The older name of an operator where it is another one. A name that ends in ``_`` works in place, and is looked up
without it."""
_INPUTS: Final = {
    "split_with_num": ("X", "AxisTensor"),
    "split": ("X", "SectionsTensor", "AxisTensor"),
    "full_with_tensor": ("ValueTensor", "ShapeTensor"),
    "uniform": ("ShapeTensor", "", ""),
}
"""The inputs of operators whose order is not that of the converter."""
_NOT_SAVED: Final = "__non_persistable"
"""How the names of state end that is not in the file of parameters."""
_OUTPUTS: Final = {"rnn": ("Out", "", "State")}
_ATTRIBUTES: Final = {
    "matmul": {"transpose_x": "trans_x", "transpose_y": "trans_y"},
    "cast": {"dtype": "out_dtype"},
    "transpose": {"perm": "axis"},
    "full_int_array": {"value": "values"},
    "pow": {"y": "factor"},
    "leaky_relu": {"negative_slope": "alpha"},
    "sum": {"axis": "dim", "keepdim": "keep_dim", "dtype": "out_dtype"},
    "hardtanh": {"min": "t_min", "max": "t_max"},
    "dropout": {"p": "dropout_prob"},
    "pool3d": {"kernel_size": "ksize"},
    "max_pool2d_with_index": {"kernel_size": "ksize"},
    "max_pool3d_with_index": {"kernel_size": "ksize"},
    "pad3d": {"pad_value": "value"},
    "one_hot": {"num_classes": "depth"},
}
"""Other names of attributes."""


def read_pir(content: bytes) -> Program:
    """A program from the content of a ``.json`` file."""
    try:
        document = json.loads(content)
        blocks = document["program"]["regions"][0]["blocks"]
        if document["base_code"]["magic"] != "pir":
            raise KeyError("magic")
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise ModelError(f"not a PaddlePaddle program: {type(error).__name__}: {error}") from None
    reader = _Reader(int(document["base_code"].get("version", 0)))
    try:
        for operation in blocks[0]["ops"]:
            reader.operation(operation)
    except (KeyError, IndexError, TypeError) as error:
        raise ModelError(
            f"the program is damaged: an operation lacks {type(error).__name__}: {error}"
        ) from error
    program = reader.program
    if not program.outputs:
        raise ModelError("the program has no results: save it for inference (paddle.jit.save)")
    return program


def _plain(attribute: Any) -> Any:
    """The value of an attribute."""
    if isinstance(attribute, dict):
        kind: str = attribute.get("#", "")
        value: Any = attribute.get("D")
        if kind.endswith("a_array"):
            return [_plain(one) for one in value]
        if kind.endswith(("a_f32", "a_f64")) and isinstance(value, str):
            return float(value)
        return value
    return attribute


class _Reader:
    """Turns operations into operators of the older kind. A value is named by its number."""

    def __init__(self, version: int) -> None:
        self.program = Program(version=version)
        self.names: dict[int, str] = {}
        self.lists: dict[int, tuple[str, ...]] = {}
        """The values that are lists of others."""

    def operation(self, operation: dict[str, Any]) -> None:
        """Add an operation to the program."""
        name = operation["#"].split(".", 1)[-1]
        if name == "p":
            self._parameter(operation)
            return
        attributes = {one["N"]: _plain(one["AT"]) for one in operation.get("A", [])}
        inputs = [one["%"] for one in operation.get("I", [])]
        outputs = operation.get("O", [])
        if name == "combine":
            self.lists[outputs[0]["%"]] = tuple(self._name(one) for one in inputs)
        elif name in ("split", "slice") and operation["#"].startswith("0."):
            parts = self.lists[inputs[0]]
            chosen = parts if name == "split" else (parts[int(attributes["index"])],)
            for made, part in zip(outputs, chosen, strict=True):
                self.names[made["%"]] = part
        elif name in ("data", "feed"):
            self._result(outputs[0], str(attributes["name"]))
            self.program.inputs.append(str(attributes["name"]))
        elif name in ("fetch", "shadow_output"):
            self.program.outputs.append(self._name(inputs[0]))
        else:
            self._operator(name, attributes, inputs, outputs)

    def _parameter(self, operation: dict[str, Any]) -> None:
        name = str(operation["A"][-1])
        self._result(operation["O"], name, persistable=not name.endswith(_NOT_SAVED))

    def _operator(
        self, name: str, attributes: dict[str, Any], inputs: list[int], outputs: list[dict[str, Any]]
    ) -> None:
        name = name if name in _NAMES else name.removesuffix("_")
        older = _NAMES.get(name, name)
        renamed = _ATTRIBUTES.get(name, {})
        held = {renamed.get(key, key): value for key, value in attributes.items()}
        if older.startswith("reduce_"):
            for key, other in (("axis", "dim"), ("keepdim", "keep_dim")):
                if key in held:
                    held[other] = held.pop(key)
        if name in ("tril", "triu"):
            held["lower"] = name == "tril"
        entry = find_converter(older)
        reads = _INPUTS.get(name) or (tuple(one.rstrip("*") for one in entry.reads) if entry else ())
        writes = _OUTPUTS.get(name) or (tuple(one.rstrip("*") for one in entry.writes) if entry else ("Out",))
        given: dict[str, tuple[str, ...]] = {}
        for place, number in enumerate(inputs):
            read = reads[place] if place < len(reads) else f"input{place}"
            if read and number:
                given[read] = self.lists.get(number) or (self._name(number),)
        made: dict[str, tuple[str, ...]] = {}
        for place, one in enumerate(outputs):
            names = self._results(one)
            if place < len(writes) and writes[place]:
                made[writes[place]] = names
        self.program.operators.append(OperatorEntry(older, given, made, held))

    def _name(self, number: int) -> str:
        if number not in self.names:
            raise ModelError(f"the program is damaged: there is no value {number}")
        return self.names[number]

    def _results(self, one: dict[str, Any]) -> tuple[str, ...]:
        kind = one.get("TT") or {}
        number = one["%"]
        if kind.get("#", "").endswith("t_vec"):
            parts = tuple(f"value{number}.{place}" for place in range(len(kind["D"])))
            for part, inner in zip(parts, kind["D"], strict=True):
                self._declare(part, inner, False)
            self.lists[number] = parts
            return parts
        name = f"value{number}"
        self._result(one, name)
        return (name,)

    def _result(self, one: dict[str, Any], name: str, persistable: bool = False) -> None:
        self.names[one["%"]] = name
        self._declare(name, one.get("TT") or {}, persistable)

    def _declare(self, name: str, kind: dict[str, Any], persistable: bool) -> None:
        if not kind.get("#", "").endswith("t_dtensor"):
            return
        element, sizes = kind["D"][0]["#"].split(".")[-1], kind["D"][1]
        shape = tuple(None if size < 0 else int(size) for size in sizes)
        self.program.tensors[name] = TensorEntry(_DTYPES.get(element, element), shape, persistable)
