"""The files that a compiled model becomes."""

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.relay.backend.aot import AOTModule, compile_aot
from tilewright.runtime import load_param_dict, save_param_dict


def compiled(model: Any, target: str, **options: Any) -> AOTModule:
    return compile_aot(
        model.graph, save_param_dict({"w": model.weight}), model.kernels, target, "net", **options
    )


def test_files_beside_the_code(model: Any, tmp_path: Path) -> None:
    """Source and objects come with their header, and with the constants where they are the caller's."""
    compiled(model, "c").export_library(str(tmp_path / "a.c"))
    compiled(model, "llvm", embed_constants=False).export_library(str(tmp_path / "b.o"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.c", "a.h", "b.bin", "b.h", "b.o"]
    np.testing.assert_array_equal(np.fromfile(tmp_path / "b.bin", "float32"), model.weight.reshape(-1))
    assert "const void* constants" in (tmp_path / "b.h").read_text()
    assert "constants" not in (tmp_path / "a.h").read_text()
    assert (tmp_path / "b.o").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_a_library_for_programs_that_load(target: str, model: Any, tmp_path: Path) -> None:
    """Exported as a shared library, the C function is there under its name."""
    module = compiled(model, target)
    module.export_library(str(tmp_path / "net.so"))
    run = ctypes.CDLL(str(tmp_path / "net.so")).tilewright_net_run
    arrays = [model.value, *(np.zeros(argument.tensor.shape, "float32") for argument in module.outputs)]
    memory = np.zeros(module.memory.workspace + 64, "uint8")
    workspace = ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % 64)
    inputs = (ctypes.c_void_p * 1)(arrays[0].ctypes.data)
    outputs = (ctypes.c_void_p * 5)(*(array.ctypes.data for array in arrays[1:]))
    assert run(inputs, outputs, workspace) == 0
    for actual, expected in zip(arrays[1:], model.reference(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-6)
    assert run(None, outputs, workspace) == run(inputs, None, workspace) == -2


def test_what_a_model_library_says(model: Any) -> None:
    """The parameters, the graph and the memory of the model are in its library's description."""
    library = compiled(model, "c").model_library()
    files = library.files()
    graph = json.loads(files["executor-config/aot/graph.json"])
    assert [node["name"] for node in graph["nodes"]][:3] == ["x", "w", "dense"]
    np.testing.assert_array_equal(load_param_dict(files["parameters/net.params"])["w"].numpy(), model.weight)
    assert library.metadata(files)["memory"]["workspace_size_bytes"] == 3 * 2048
