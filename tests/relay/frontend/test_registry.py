"""Formats of models: how one is known, told from a file, and added."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata

import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tvm
from tilewright import relay
from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.relay.frontend import registry
from tilewright.relay.frontend.format_errors import FormatError
from tilewright.relay.frontend.registry import Frontend

PROGRAM = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }')


@pytest.fixture
def fresh(monkeypatch):
    """A registry in which nothing has been registered, and that forgets what the test adds."""
    monkeypatch.setattr(registry, "_registered", {})
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


@pytest.fixture
def onnx_bytes():
    """The content of a small model."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", infos[:1], infos[1:])
    return helper.make_model(graph).SerializeToString()


def lines_frontend(**changes):
    """A frontend of another package."""
    fields = {
        "name": "lines",
        "suffixes": ("lines",),
        "load": lambda path, shape=None, **options: (PROGRAM, {}),
        "sniff": lambda head: head.startswith(b"LINES"),
    }
    return Frontend(**{**fields, **changes})


def test_the_package_has_its_folders():
    """Every folder but the shared one is a frontend."""
    assert {"keras", "onnx", "pb", "pytorch", "saved_model", "tflite"} <= registry._own().keys()
    assert {"caffe", "caffe2", "coreml", "darknet", "mxnet", "paddle"} <= registry._own().keys()


def test_importing_relay_imports_no_frontend():
    """Neither the package onnx nor the importers are loaded before a model is read."""
    program = "import sys, tilewright.relay; print([m for m in sys.modules if m == 'onnx' or 'relay.frontend' in m])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["model", "model.bin", "model.onx"])
def test_onnx_is_told_by_its_content(name, tmp_path, onnx_bytes):
    """A suffix that says nothing does not matter."""
    path = tmp_path / name
    path.write_bytes(onnx_bytes)
    assert registry.guess_frontend(str(path)).name == "onnx"
    module, _ = relay.frontend.import_model(str(path))
    assert module["main"].ret_type.concrete_shape == (2, 3)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\x89HDF\r\n\x1a\n" + bytes(8), "keras"),
        (b"\x1c\0\0\0TFL3" + bytes(8), "tflite"),
    ],
)
def test_formats_are_told_by_their_content(content, name, tmp_path):
    """A file without a suffix goes to the frontend whose files begin like it."""
    path = tmp_path / "model"
    path.write_bytes(content)
    assert registry.guess_frontend(str(path)).name == name


def test_torchscript_is_a_zip(tmp_path):
    """An archive without a suffix is taken for PyTorch's."""
    with zipfile.ZipFile(tmp_path / "model", "w") as archive:
        archive.writestr("model/data.pkl", b"")
    assert registry.guess_frontend(str(tmp_path / "model")).name == "pytorch"


@pytest.mark.parametrize("content", [b"", b"\x08", b"\x08\x08", b"\x08\x00:", b"plain text", b"\x0a\x12node"])
def test_other_content_is_no_format(content, tmp_path):
    """The error lists what can be read, with the nearest suffix where there is one."""
    path = tmp_path / "model.onnxx"
    path.write_bytes(content)
    with pytest.raises(
        FormatError, match=r"did you mean .onnx\?\) nor from its content. This version reads .*onnx"
    ):
        registry.guess_frontend(str(path))
    with pytest.raises(FormatError, match="is a folder"):
        registry.guess_frontend(str(tmp_path))


def test_unknown_names(capsys, tmp_path):
    """The nearest is named; on the command line too."""
    with pytest.raises(
        FormatError, match=r"no model format 'onx' \(did you mean onnx\?\); they are .*keras, mxnet, onnx"
    ):
        registry.find_frontend("onx")
    with pytest.raises(FormatError, match="there is no model nothere"):
        registry.import_model("nothere.xyz")
    (tmp_path / "m.onnx").write_bytes(b"")
    assert main(["inspect", str(tmp_path / "m.onnx"), "--model-format", "theano"]) == 2
    assert "no model format 'theano'" in capsys.readouterr().err


def test_a_frontend_can_be_registered(fresh, tmp_path, capsys):
    """All that reads models knows it: tvmc, inspect, opt."""
    frontend = registry.register_frontend(lines_frontend())
    path = tmp_path / "m.LINES"
    path.write_bytes(b"LINES")
    assert registry.guess_frontend(str(path)) is frontend
    assert "lines" in tvmc.frontends.get_frontend_names()
    made = tvmc.frontends.get_frontend_by_name("lines")
    assert (made.name(), made.suffixes()) == ("lines", ["lines"])
    assert tvm.ir.structural_equal(tvmc.load(str(path)).mod, PROGRAM)
    assert main(["opt", str(path)]) == 0
    assert "nn.relu" in capsys.readouterr().out
    assert main(["compile", str(path), "--list-unsupported"]) == 2
    assert "the frontend 'lines' cannot list what it does not support" in capsys.readouterr().err


def test_names_are_taken_once(fresh):
    """A second frontend of a name has to say that it replaces the first, also one of the package."""
    registry.register_frontend(lines_frontend())
    with pytest.raises(FormatError, match="frontend 'lines' already"):
        registry.register_frontend(lines_frontend())
    other = registry.register_frontend(lines_frontend(), override=True)
    assert registry.find_frontend("lines") is other
    paddle = registry.register_frontend(lines_frontend(name="paddle", suffixes=("pdmodel",)), override=True)
    assert registry.guess_frontend("m.pdmodel") is paddle


def test_content_decides_between_two_of_one_suffix(fresh, tmp_path):
    """Where the suffix leaves a choice, the first bytes are asked."""
    frontends = [
        registry.register_frontend(
            lines_frontend(name=name, suffixes=("m",), sniff=lambda head, name=name: head == name.encode())
        )
        for name in ("first", "second")
    ]
    for expected in frontends:
        content = expected.name.encode()
        (tmp_path / "x.m").write_bytes(content)
        assert registry.guess_frontend(str(tmp_path / "x.m")) is expected


def test_entry_points(fresh, monkeypatch):
    """Another package's frontend is found; one that cannot be loaded is a warning, and the others still work."""
    made = lines_frontend()
    module = type(sys)("third_party_frontend")
    module.FRONTEND, module.NUMBER = made, 3
    monkeypatch.setitem(sys.modules, "third_party_frontend", module)
    points = [
        metadata.EntryPoint(name, value, registry.ENTRY_POINTS)
        for name, value in [
            ("lines", "third_party_frontend:FRONTEND"),
            ("number", "third_party_frontend:NUMBER"),
            ("gone", "package_that_is_not_there:FRONTEND"),
        ]
    ]
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="cannot be loaded") as warned:
        assert registry.find_frontend("lines") is made
    messages = [str(one.message) for one in warned]
    assert messages[0].endswith("third_party_frontend:NUMBER is a int, not a Frontend")
    assert "the frontend 'gone' cannot be loaded: ModuleNotFoundError" in messages[1]
    assert registry.find_frontend("onnx").suffixes == ("onnx",)


def test_onnx_options_reach_the_importer(tmp_path, onnx_bytes):
    """Options and shapes are the importer's."""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.load_from_string(onnx_bytes), str(path))
    module, params = registry.import_model(str(path), shape={"x": [4, 3]}, freeze_params=True)
    assert module["main"].params[0].checked_type.concrete_shape == (4, 3) and params == {}
