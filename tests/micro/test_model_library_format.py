"""Model library format: what is in the file, that it loads, and that a changed file is refused."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import micro, te
from tilewright.contrib import graph_executor
from tilewright.relay.backend.aot import AOTModule, compile_aot
from tilewright.support.errors import ModelError, TilewrightError

WEIGHT = np.arange(4, dtype="float32")
GRAPH = json.dumps(
    {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "w", "inputs": []},
            {
                "op": "tvm_op",
                "name": "y",
                "attrs": {"func_name": "scale", "num_outputs": "1"},
                "inputs": [[0, 0, 0], [1, 0, 0]],
            },
        ],
        "arg_nodes": [0, 1],
        "heads": [[2, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3],
        "attrs": {
            "shape": ["list_shape", [[4]] * 3],
            "dltype": ["list_str", ["float32"] * 3],
            "storage_id": ["list_int", [0, 1, 2]],
        },
    }
)


def kernels() -> tvm.IRModule:
    x, w = te.placeholder((4,), name="x"), te.placeholder((4,), name="w")
    y = te.compute((4,), lambda i: x[i] * w[i], name="y")
    return tvm.lower(te.create_schedule(y.op), [x, w, y], name="scale")


def ahead_of_time(target: str, **options: Any) -> AOTModule:
    return compile_aot(GRAPH, {"w": WEIGHT}, kernels(), target, "net", **options)


class GraphFactory:
    """A model for the graph executor, as a graph compiler gives it."""

    libmod_name = "net"

    def get_graph_json(self) -> str:
        return GRAPH

    def get_params(self) -> dict[str, Any]:
        return {"w": tvm.nd.array(WEIGHT)}

    def get_lib(self) -> tvm.runtime.Module:
        return tvm.build(kernels(), target="llvm")


def exported(module: Any, folder: Path) -> Path:
    return Path(micro.export_model_library_format(module, folder / "net.tar"))


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_ahead_of_time(target: str, tmp_path: Path) -> None:
    """A model compiled ahead of time travels with code, header, parameters and loops; its code loads and runs."""
    module = ahead_of_time(target, interface="packed")
    path = exported(module, tmp_path)
    code = "codegen/host/src/net.c" if target == "c" else "codegen/host/lib/lib0.o"
    with tarfile.open(path) as archive:
        names = {name.removeprefix("./") for name in archive.getnames()}
    assert names == {
        "metadata.json",
        code,
        "codegen/host/include/tilewright_net.h",
        "parameters/net.params",
        "executor-config/aot/graph.json",
        "src/tir.txt",
    }
    metadata = micro.extract_model_library(path, tmp_path / "out")
    assert (metadata["version"], metadata["model_name"], metadata["executors"]) == (5, "net", ["aot"])
    assert metadata["memory"] == {
        "constants_size_bytes": 64,
        "io_size_bytes": 32,
        "workspace_size_bytes": 0,
        "alignment_bytes": 64,
    }
    saved = tvm.runtime.load_param_dict((tmp_path / "out/parameters/net.params").read_bytes())
    np.testing.assert_array_equal(saved["w"].numpy(), WEIGHT)
    out = tvm.nd.empty((4,))
    tvm.runtime.load_module(path)["net"](tvm.nd.array(np.full(4, 3, "float32")), out)
    np.testing.assert_array_equal(out.numpy(), WEIGHT * 3)


def test_constants_of_the_caller_travel_too(tmp_path: Path) -> None:
    """Where the caller provides the constants, their content is in the file as the region wants it."""
    module = ahead_of_time("c", embed_constants=False)
    module.export_library(str(tmp_path / "net.tar"))
    micro.extract_model_library(tmp_path / "net.tar", tmp_path / "out")
    content = (tmp_path / "out/parameters/net.bin").read_bytes()
    np.testing.assert_array_equal(np.frombuffer(content[:16], "float32"), WEIGHT)
    with pytest.raises(ValueError, match="its interface is 'c'. Link its code into a program"):
        tvm.runtime.load_module(tmp_path / "net.tar")


def test_graph(tmp_path: Path) -> None:
    """A model for the graph executor runs from its file: code, graph and parameters."""
    path = exported(GraphFactory(), tmp_path)
    metadata = micro.extract_model_library(path, tmp_path / "out")
    assert metadata["executors"] == ["graph"] and metadata["functions"] == ["scale"]
    graph = (tmp_path / "out/executor-config/graph/graph.json").read_text()
    model = graph_executor.create(graph, tvm.runtime.load_module(path), tvm.cpu(0))
    model.load_params((tmp_path / "out/parameters/net.params").read_bytes())
    model.run(x=tvm.nd.array(np.full(4, 5, "float32")))
    np.testing.assert_array_equal(model.get_output(0).numpy(), WEIGHT * 5)


def test_operators(tmp_path: Path) -> None:
    """A module of operators has code and loops, and no executor."""
    path = exported(tvm.build(kernels(), target="llvm"), tmp_path)
    metadata = micro.extract_model_library(path, tmp_path / "out")
    assert metadata["style"] == "operator" and metadata["executors"] == []
    assert "def scale" in (tmp_path / "out/src/tir.txt").read_text()
    out = tvm.nd.empty((4,))
    tvm.runtime.load_module(path)["scale"](tvm.nd.array(WEIGHT), tvm.nd.array(WEIGHT), out)
    np.testing.assert_array_equal(out.numpy(), WEIGHT**2)


def test_what_it_cannot_hold(tmp_path: Path) -> None:
    """Device source and things that are not modules are refused."""
    device = tvm.runtime.module.SourceModule("kernel", format="cu", type_key="cuda")
    with pytest.raises(ModelError, match="cuda module has neither object code nor C source"):
        exported(device, tmp_path)
    with pytest.raises(ModelError, match="a int is not a module"):
        exported(3, tmp_path)
    host = tvm.build(kernels(), target="llvm")
    host.import_module(device)
    with pytest.raises(ModelError, match="imports device code"):
        exported(host, tmp_path)
    assert not list(tmp_path.iterdir())


def rewritten(path: Path, change: dict[str, bytes]) -> None:
    """The archive with members replaced or added."""
    with tarfile.open(path) as archive:
        members = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    with tarfile.open(path, "w") as archive:
        for name, content in {**members, **change}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("name", ["./src/tir.txt", "./codegen/host/lib/lib0.o", "./codegen/host/lib/extra.o"])
def test_changed_files_are_refused(name: str, tmp_path: Path) -> None:
    """A file that was changed or added is an error before anything is loaded or written."""
    path = exported(ahead_of_time("llvm", interface="packed"), tmp_path)
    rewritten(path, {name: b"other"})
    with pytest.raises(ValueError, match="does not have the checksum"):
        tvm.runtime.load_module(path)
    with pytest.raises(ValueError, match="does not have the checksum"):
        micro.extract_model_library(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_lands_outside(tmp_path: Path) -> None:
    """A link or a path that leads out of the folder is refused, whatever the metadata says."""
    metadata = json.dumps({"functions": [], "features": [], "sha256": {}}).encode()
    for kind, name in ((tarfile.SYMTYPE, "link"), (tarfile.DIRTYPE, "../outside")):
        path = tmp_path / "bad.tar"
        with tarfile.open(path, "w") as archive:
            entry = tarfile.TarInfo("metadata.json")
            entry.size = len(metadata)
            archive.addfile(entry, io.BytesIO(metadata))
            other = tarfile.TarInfo(name)
            other.type, other.linkname = kind, "../../etc"
            archive.addfile(other)
        with pytest.raises(ValueError, match="cannot be unpacked"):
            micro.extract_model_library(path, tmp_path / "deep" / "out")
        assert not (tmp_path / "deep" / "outside").exists()


def test_truncated_files(tmp_path: Path) -> None:
    """A file that ends early is an error or lacks a member, which is an error too."""
    path = exported(ahead_of_time("llvm", interface="packed"), tmp_path)
    content = path.read_bytes()
    for size in range(0, len(content) - 10240, 997):
        path.write_bytes(content[:size])
        with pytest.raises(TilewrightError):
            tvm.runtime.load_module(path)
