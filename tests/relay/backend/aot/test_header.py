"""The header of a compiled model: C and C++ compilers take it, and its structures have the model's tensors."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.relay.backend.aot import compile_aot
from tilewright.relay.backend.aot.header import element_type
from tilewright.support.dtype import DataType


def test_element_types() -> None:
    """Types that C has are themselves; others are bits of their size."""
    names = ["float32", "float64", "int8", "uint16", "int64", "bool", "float16", "bfloat16", "float32x4"]
    expected = [
        "float",
        "double",
        "int8_t",
        "uint16_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint16_t",
        "float",
    ]
    assert [element_type(DataType(name)) for name in names] == expected


@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_compilers_take_it(compiler: str, tmp_path: Path) -> None:
    """Inputs whose names are no C names, or differ in case alone, have fields and sizes of their own."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    a, b = te.placeholder((4,), "int8", name="a"), te.placeholder((), "float64", name="b")
    y = te.compute((4,), lambda i: a[i].astype("float64") * b(), name="y")
    nodes = [
        {"op": "null", "name": "serving/in:0", "inputs": []},
        {"op": "null", "name": "Serving_in_0", "inputs": []},
        {"op": "tvm_op", "name": "y", "attrs": {"func_name": "f"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
    ]
    attributes = {"shape": ["", [[4], [], [4]]], "dltype": ["", ["int8", "float64", "float64"]]}
    graph = {"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": attributes}
    kernels = tvm.lower(te.create_schedule(y.op), [a, b, y], name="f")
    header = compile_aot(json.dumps(graph), None, kernels, "c").header()
    assert "const int8_t* serving_in_0; /* int8, shape 4 */" in header
    assert "const double* Serving_in_0; /* float64, shape () */" in header
    assert "#define TILEWRIGHT_MODEL_INPUT_serving_in_0_SIZE 4\n" in header
    assert "#define TILEWRIGHT_MODEL_INPUT_Serving_in_0_SIZE 8\n" in header
    (tmp_path / "h.h").write_text(header)
    suffix = "c" if compiler == "cc" else "cpp"
    (tmp_path / f"main.{suffix}").write_text(
        '#include "h.h"\n#include "h.h"\nint main(void) { return (int)sizeof(struct tilewright_model_inputs) - 16; }\n'
    )
    command = [compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", f"main.{suffix}"]
    subprocess.run(command, cwd=tmp_path, check=True)
