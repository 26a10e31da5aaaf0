"""Model library format of what ``relay.build`` gives, as TVM's tests of it ask."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import micro, relay
from tilewright.contrib import graph_executor


@pytest.mark.parametrize("target", ["llvm", "c --runtime=c", "c --runtime=c --executor=aot"])
def test_export_of_a_built_model(target: str, tmp_path: Path) -> None:
    """Graphs and ahead-of-time code: metadata, parameters, code."""
    a, b = relay.var("a", shape=(1, 2)), relay.var("b", shape=(1, 2))
    mod = tvm.IRModule.from_expr(relay.Function([a, b], relay.nn.relu(a) + b))
    factory = relay.build(mod, target, mod_name="add", params={"b": np.array([[1, 2]], "float32")})
    path = tmp_path / "mlf.tar"
    micro.export_model_library_format(factory, path)
    with tarfile.open(path) as archive:
        names = [name.removeprefix("./") for name in archive.getnames()]
        described = json.load(archive.extractfile("./metadata.json"))  # type: ignore[arg-type]
    assert described["version"] == 5 and described["model_name"] == "add"
    assert described["executors"] == ["aot" if "aot" in target else "graph"]
    folder = "codegen/host/lib/" if target == "llvm" else "codegen/host/src/"
    assert "parameters/add.params" in names and any(name.startswith(folder) for name in names)


def test_what_it_cannot_hold(tmp_path: Path) -> None:
    """The error is TVM's."""
    with pytest.raises(micro.UnsupportedInModelLibraryFormatError):
        micro.export_model_library_format("nothing", tmp_path / "mlf.tar")


def test_fusion_cannot_be_disabled() -> None:
    """The message names the pass; nothing fused at level zero runs."""
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x + x)))
    with (
        tvm.transform.PassContext(opt_level=3, disabled_pass=["FuseOps"]),
        pytest.raises(tvm.TVMError, match="FuseOps"),
    ):
        relay.build(mod, "llvm")
    with tvm.transform.PassContext(opt_level=0):
        lib = relay.build(mod, "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.zeros(2, "float32"))
    assert module.get_output(0).numpy().tolist() == [1, 1]
