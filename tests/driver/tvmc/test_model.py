"""TVMCModel, TVMCPackage and TVMCResult."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tilewright import relay
from tilewright.driver import tvmc
from tilewright.driver.tvmc import TVMCException, TVMCModel, TVMCPackage, TVMCResult
from tilewright.ir.structural import structural_equal
from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.params import load_param_dict


def test_a_saved_model_is_the_same(small_onnx, tmp_path):
    """Program and parameters survive; a file that is something else is refused."""
    model = tvmc.load(small_onnx)
    path = str(tmp_path / "saved.tar")
    model.save(path)
    again = TVMCModel(model_path=path)
    assert structural_equal(again.mod, model.mod)
    assert sorted(again.params) == sorted(model.params)
    for name, value in model.params.items():
        np.testing.assert_array_equal(again.params[name].numpy(), value.numpy())
    with pytest.raises(TVMCException, match="no saved model"):
        TVMCModel(model_path=str(tmp_path / "nothere.tar"))
    with tarfile.open(path, "w"):
        pass
    with pytest.raises(TVMCException, match="is not a saved model"):
        TVMCModel(model_path=path)
    with pytest.raises(TVMCException, match="a module and parameters"):
        TVMCModel()


def test_summary_is_the_program(small_onnx):
    """In text form, into a file."""
    text = io.StringIO()
    tvmc.load(small_onnx).summary(file=text)
    assert "def @main(%x: Tensor[(2, 4), float32]" in text.getvalue()


def test_default_paths_go_with_the_model(small_onnx):
    """They lie in a folder of the model's own."""
    model = tvmc.load(small_onnx)
    folder = Path(model.default_package_path()).parent
    assert folder == Path(model.default_tuning_records_path()).parent and folder.is_dir()
    del model
    assert not folder.exists()


def test_a_package_from_a_build(small_onnx, tmp_path):
    """What ``relay.build`` gives can be exported, and the package has its graph and parameters."""
    model = tvmc.load(small_onnx)
    factory = relay.build(model.mod, "llvm", params=model.params)
    path = model.export_package(factory, str(tmp_path / "p.tar"), output_format="tar")
    package = TVMCPackage(path)
    assert (package.type, package.executor_type, package.lib_name) == ("classic", "graph", "mod.tar")
    assert json.loads(package.graph)["heads"]
    assert sorted(load_param_dict(package.params)) == sorted(factory.get_params())
    assert package.load_library().function_names
    with pytest.raises(TVMCException, match="so, tar and mlf"):
        model.export_package(factory, output_format="zip")
    with pytest.raises(TVMCException, match="does not need a cross compiler"):
        model.export_package(factory, cross="cc", output_format="mlf")
    with pytest.raises(TVMCException, match="not a compiled model"):
        model.export_package(object())


def test_a_model_library_as_a_package(small_onnx, expected, tmp_path):
    """It has no library file of its own, and no graph where C code stands in for an executor; it runs all the same."""
    model = tvmc.load(small_onnx)
    for target, executor in (("llvm", "graph"), ("c -executor=aot", "aot"), ("c", "graph")):
        path = str(tmp_path / f"{executor}.tar")
        package = tvmc.compile(model, target=target, output_format="mlf", package_path=path)
        assert (package.type, package.executor_type, package.lib_name, package.lib_path) == (
            *("mlf", executor),
            *(None, None),
        )
        assert (package.graph is None) == (executor == "aot")
        with tarfile.open(path) as archive:
            names = archive.getnames()
        assert any(name.endswith(".c" if target.startswith("c") else ".o") for name in names)


def test_a_package_of_tvmc_without_our_description(small_package, tmp_path):
    """Library, graph and parameters are enough: it is read as one for the graph executor."""
    plain = tmp_path / "plain.tar"
    with tarfile.open(small_package) as given, tarfile.open(plain, "w") as made:
        for member in given:
            if member.name != "package.json":
                made.addfile(member, given.extractfile(member))
    package = TVMCPackage(str(plain))
    assert [one.text() for one in package.content.inputs] == ["x float32[2, 4]"]
    assert tvmc.run(package, "cpu", repeat=1, number=1).get_output("output_0").shape == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda members: members.pop("mod.params"), "mod.params is not what"),
        (lambda members: members.pop("mod.tar"), "is not a package"),
        (lambda members: members.update({"extra": b"x"}), "extra is not what"),
        (lambda members: members.update({"mod.json": b"{}"}), "mod.json is not what"),
        (lambda members: members.update({"package.json": b"{"}), "is not readable"),
        (lambda members: members.update({"package.json": b'{"format": 9, "sha256": {}}'}), "format 9"),
    ],
)
def test_damaged_packages(change, message, small_package, tmp_path):
    """A member that is missing, added or changed is found."""
    with tarfile.open(small_package) as given:
        members = {member.name: given.extractfile(member).read() for member in given}
    change(members)
    path = tmp_path / "bad.tar"
    with tarfile.open(path, "w") as made:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    with pytest.raises(TVMCException, match=message):
        TVMCPackage(str(path))


def test_results(tmp_path):
    """Outputs by name, times as a table, and a file of them."""
    result = TVMCResult({"output_0": np.arange(3)}, BenchmarkResult([0.002, 0.004]))
    assert "mean (ms)" in result.format_times() and "3.0000" in result.format_times()
    assert "Output Names:\n ['output_0']" in str(result)
    with pytest.raises(TVMCException, match="no output 'z'; there are output_0"):
        result.get_output("z")
    result.save(str(tmp_path / "out"))
    with np.load(tmp_path / "out.npz") as stored:
        np.testing.assert_array_equal(stored["output_0"], [0, 1, 2])


def test_outputs_have_the_models_names(small_package, tmp_path):
    """And, for programs that were written for tvmc, its names by position; the file has the model's only."""
    result = tvmc.run(tvmc.TVMCPackage(small_package), "cpu", repeat=1, number=1)
    assert list(result.outputs) == ["y", "p"]
    assert result.get_output("output_1") is result.outputs["output_1"] is result.outputs["p"]
    assert "output_1" in result.outputs and "output_2" not in result.outputs
    assert result.outputs.get("output_0") is result.outputs["y"] and result.outputs.get("z", 3) == 3
    with pytest.raises(TVMCException, match="no output 'output_2'; there are y, p"):
        result.get_output("output_2")
    result.save(str(tmp_path / "out.npz"))
    with np.load(tmp_path / "out.npz") as stored:
        assert stored.files == ["y", "p"]


def test_outputs_of_any_name_are_saved(tmp_path):
    """Also those that are called like an argument of NumPy's, or that have a slash."""
    values = {"file": np.arange(3), "layer/out:0": np.float32(2)}
    TVMCResult(values, None).save(str(tmp_path / "out.npz"))
    with np.load(tmp_path / "out.npz") as stored:
        assert stored.files == list(values)
        for name, value in values.items():
            np.testing.assert_array_equal(stored[name], value)
