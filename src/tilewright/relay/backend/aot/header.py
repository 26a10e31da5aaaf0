"""The C header of a compiled model: its function, the structures it takes, and the size and alignment of everything."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.relay.backend.aot.entry import INVALID_ARGUMENT, Argument, ModelFunctions
from tilewright.relay.backend.aot.kernels import FAILED
from tilewright.support.arena import ALIGNMENT
from tilewright.support.dtype import DataType

_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}
_INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def element_type(dtype: DataType) -> str:
    """The C type of an element; types that C has no name for are bits of their size."""
    name = str(dtype.element)
    if name in _INTEGERS:
        return f"{name}_t"
    return _TYPES.get(name, f"uint{8 * dtype.itemsize}_t")


def header_name(name: str) -> str:
    """The file name of a model's header."""
    return f"tilewright_{name}.h"


def make_header(model: ModelFunctions) -> str:
    """The header's text."""
    name, upper = model.name, f"TILEWRIGHT_{model.name.upper()}"
    constants = " const void* constants," if model.takes_constants else ""
    is_named = bool(model.graph.output_names)
    sizes = [
        *_sizes(upper, "INPUT", model.inputs, True),
        *_sizes(upper, "OUTPUT", model.outputs, is_named),
    ]
    if model.takes_constants:
        sizes += _size(f"{upper}_CONSTANTS", model.plan.constants_size, ALIGNMENT)
    sizes += _size(f"{upper}_WORKSPACE", model.plan.workspace_size, ALIGNMENT)
    return "\n".join(
        [
            f"/* The model {name}, compiled by Tilewright. All memory is the caller's: it must have these sizes and",
            "   alignments in bytes, and outputs and workspace must not overlap anything else. */",
            f"#ifndef {upper}_H_",
            f"#define {upper}_H_",
            "",
            "#include <stdint.h>",
            "",
            *sizes,
            "",
            f"#define {upper}_OK 0",
            f"#define {upper}_FAILED ({FAILED}) /* a kernel failed */",
            f"#define {upper}_INVALID_ARGUMENT ({INVALID_ARGUMENT}) /* a pointer is NULL or misaligned */",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *_structure(f"tilewright_{name}_inputs", model.inputs, "const "),
            *_structure(f"tilewright_{name}_outputs", model.outputs, ""),
            "/* Runs the model. The workspace holds nothing between two runs; NULL will do if its size is 0. */",
            f"int32_t {model.entry_symbol}(const struct tilewright_{name}_inputs* inputs,",
            f"    const struct tilewright_{name}_outputs* outputs,{constants} void* workspace);",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
            "",
        ]
    )


def _size(name: str, size: int, alignment: int) -> list[str]:
    return [f"#define {name}_SIZE {size}", f"#define {name}_ALIGNMENT {alignment}"]


def _sizes(upper: str, kind: str, arguments: Sequence[Argument], is_named: bool) -> list[str]:
    lines: list[str] = []
    for argument in arguments:
        # Names of the model keep their case: two may differ only in it.
        label = f"{kind}_{argument.name}" if is_named else argument.name.upper()
        lines += _size(f"{upper}_{label}", argument.num_bytes, argument.alignment)
    return lines


def _structure(name: str, arguments: Sequence[Argument], qualifier: str) -> list[str]:
    if not arguments:
        return [f"struct {name};", ""]
    fields = [
        f"  {qualifier}{element_type(argument.tensor.dtype)}* {argument.name}; "
        f"/* {argument.tensor.dtype}, shape {_shape(argument)} */"
        for argument in arguments
    ]
    return [f"struct {name} {{", *fields, "};", ""]


def _shape(argument: Argument) -> str:
    return " x ".join(str(extent) for extent in argument.tensor.concrete_shape) or "()"
