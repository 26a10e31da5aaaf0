"""The deployment examples: the README's commands build and run each program whose tools are on the machine."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tvm
from tilewright.driver.cli import main
from tilewright.support.cbuild import zig_command

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples" / "deploy"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n.*?^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))

NEEDS = {
    "C": (["cc"], []),
    "C++": (["c++"], []),
    "Rust": (["cargo", "cc"], []),
    "Java": (["javac", "java", "cc"], []),
    "Node.js": (["node"], ["ziglang"]),
    "Python": (["cc"], []),
    "PyTorch": (["cc"], ["torch", "tvm_ffi"]),
}
SLOW = {"Node.js"}
OPEN_SIZES = {
    "Open sizes in C": NEEDS["C"],
    "Open sizes in C++": NEEDS["C++"],
    "Open sizes in Rust": NEEDS["Rust"],
}
"""The programs that run a model of open sizes, with what they need."""


def missing(language: str) -> list[str]:
    """The programs and packages that a language needs and this machine lacks."""
    programs, packages = {**NEEDS, **OPEN_SIZES}[language]
    return [name for name in programs if shutil.which(name) is None] + [
        f"the package {name}"
        for name in packages
        if importlib.util.find_spec(name) is None and not (name == "ziglang" and zig_command())
    ]


def shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs lines of the README as its reader would, with the model in this folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    python_path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "OUT": str(folder), "PATH": path, "PYTHONPATH": python_path}
    return subprocess.run(
        ["bash", "-euc", commands], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@dataclass(frozen=True)
class Deployed:
    """A program that was built, what it said when it ran, and how to run it again."""

    language: str
    done: subprocess.CompletedProcess[str]
    folder: Path

    def run_on(self, data: Path) -> subprocess.CompletedProcess[str]:
        """Runs the program on other files: the README's last line, which ends with the folder."""
        command, _, last = SECTIONS[self.language].rstrip().rpartition("\n")[2].rpartition(" ")
        assert last == "$OUT"
        return shell(f"{command} {data}", self.folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that make_model.py wrote."""
    if shutil.which("bash") is None or shutil.which("cc") is None:
        pytest.skip("needs bash and a C compiler")
    folder = tmp_path_factory.mktemp("deploy")
    done = shell(SECTIONS["The model"], folder)
    assert done.returncode == 0, done.stderr
    return folder


def program(language: str) -> Any:
    """A language as a parameter of tests."""
    return pytest.param(language, marks=[pytest.mark.slow] if language in SLOW else [])


@pytest.fixture(scope="module", params=[program(name) for name in NEEDS])
def deployed(request: pytest.FixtureRequest, model: Path) -> Deployed:
    """The program of each language, built and run by the README's commands."""
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"{request.param}: this machine lacks {', '.join(lacking)}")
    return Deployed(request.param, shell(SECTIONS[request.param], model), model)


def copy_of(model: Path, folder: Path) -> Path:
    """The model's files in a folder of their own, to be spoilt."""
    for path in model.iterdir():
        if path.suffix in (".so", ".wasm", ".json", ".bin"):
            shutil.copy(path, folder)
    return folder


def test_every_language_is_in_the_readme() -> None:
    """What is tested is what the README shows, and nothing else."""
    assert list(SECTIONS) == ["The model", *NEEDS, "A model of open sizes", *OPEN_SIZES]


def test_prediction(deployed: Deployed) -> None:
    """Each program builds without a warning and gives NumPy's prediction, with a rounding error's difference."""
    assert (deployed.done.returncode, deployed.done.stderr) == (0, "")
    expected = np.fromfile(deployed.folder / "expected.bin", "float32").reshape(4, 10)
    *_, first, second = deployed.done.stdout.splitlines()
    assert first == "prediction: " + " ".join(str(row.argmax()) for row in expected)
    name, _, difference = second.partition(": ")
    assert name == "largest difference" and 0 <= float(difference) < 1e-6


def test_wrong_output_is_noticed(deployed: Deployed, tmp_path: Path) -> None:
    """A program whose output is not the expected one prints the difference and ends with 1, also for NaN."""
    folder = copy_of(deployed.folder, tmp_path)
    expected = np.fromfile(folder / "expected.bin", "float32")
    expected[17] += 0.125
    expected.tofile(folder / "expected.bin")
    done = deployed.run_on(folder)
    assert done.returncode == 1
    assert float(done.stdout.split()[-1]) == pytest.approx(0.125, abs=1e-3)
    expected[17] = np.nan
    expected.tofile(folder / "expected.bin")
    assert deployed.run_on(folder).returncode == 1


@pytest.mark.parametrize("deployed", [program(name) for name in NEEDS if name != "PyTorch"], indirect=True)
def test_errors_arrive(deployed: Deployed, tmp_path: Path) -> None:
    """What the runtime refuses reaches the program as an error of its language, with kind and message.

    The PyTorch program has no graph, and reads the parameters itself.
    """
    folder = copy_of(deployed.folder, tmp_path)
    params = (folder / "params.bin").read_bytes()
    (folder / "params.bin").write_bytes(params[:-1])
    done = deployed.run_on(folder)
    assert done.returncode == 2
    assert "ValueError: the parameters are damaged" in done.stderr
    graph = (folder / "graph.json").read_text()
    (folder / "graph.json").write_text(graph.replace('"dense_relu"', '"absent"'))
    done = deployed.run_on(folder)
    assert done.returncode == 2
    assert "ValueError: the graph's node hidden calls absent" in done.stderr


@pytest.mark.parametrize("deployed", [program("Java"), program("Node.js")], indirect=True)
def test_outputs_have_names(deployed: Deployed, tmp_path: Path) -> None:
    """An output is found by the model's name for it; any other name is an error that says it."""
    folder = copy_of(deployed.folder, tmp_path)
    graph = json.loads((folder / "graph.json").read_text())
    graph["metadata"]["output_names"] = ["scores"]
    (folder / "graph.json").write_text(json.dumps(graph))
    done = deployed.run_on(folder)
    assert done.returncode == 2
    assert "ValueError: the graph has no output probabilities" in done.stderr


@pytest.fixture(scope="module")
def compiled_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``tilewright compile`` makes of an ONNX model of the examples' sizes, unpacked under the examples' names."""
    folder = tmp_path_factory.mktemp("compiled")
    generator = np.random.default_rng(3)
    weights = [(generator.standard_normal(shape) / 8).astype("float32") for shape in ((64, 32), (32, 10))]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["product"]),
        helper.make_node("Tanh", ["product"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "w2"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    graph = helper.make_graph(
        nodes,
        "two_layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [4, 10])],
        [numpy_helper.from_array(value, name) for name, value in zip(("w1", "w2"), weights, strict=True)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "model.onnx")
    assert main(["compile", str(folder / "model.onnx"), "-o", str(folder / "model.tar")]) == 0
    with tarfile.open(folder / "model.tar") as archive:
        archive.extractall(folder, filter="data")
    for old, new in (("mod.so", "model.so"), ("mod.json", "graph.json"), ("mod.params", "params.bin")):
        (folder / old).rename(folder / new)
    x = generator.standard_normal((4, 64)).astype("float32")
    powers = np.exp(np.tanh(x.astype("float64") @ weights[0]) @ weights[1])
    x.tofile(folder / "input.bin")
    (powers / powers.sum(axis=1, keepdims=True)).astype("float32").tofile(folder / "expected.bin")
    return folder


@pytest.mark.parametrize(
    "deployed", [program(name) for name in ("C", "Rust", "Java", "Python")], indirect=True
)
def test_a_compiled_model(deployed: Deployed, compiled_model: Path) -> None:
    """The same programs run what the command line made of an ONNX model: docs/deploy.md says so.

    Those of C++ and PyTorch also call a function of the example by its name, and WebAssembly has its model inside.
    """
    done = deployed.run_on(compiled_model)
    assert (done.returncode, done.stderr) == (0, "")
    expected = np.fromfile(compiled_model / "expected.bin", "float32").reshape(4, 10)
    assert "prediction: " + " ".join(str(row.argmax()) for row in expected) in done.stdout


@pytest.fixture(scope="module")
def open_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that make_open_model.py wrote."""
    if shutil.which("bash") is None or shutil.which("cc") is None:
        pytest.skip("needs bash and a C compiler")
    folder = tmp_path_factory.mktemp("open")
    done = shell(SECTIONS["A model of open sizes"], folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("language", OPEN_SIZES)
def test_open_sizes(language: str, open_model: Path, tmp_path: Path) -> None:
    """One file serves inputs of every size, in every language; each program prints what the README shows, notices a
    wrong number, and passes on the runtime's errors."""
    lacking = missing(language)
    if lacking:
        pytest.skip(f"{language}: this machine lacks {', '.join(lacking)}")
    done = shell(SECTIONS[language], open_model)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    shown = re.search(r"```text\n(input tokens.*?)largest", README, re.DOTALL)
    assert shown is not None and lines == shown[1].splitlines()
    for size in ("2x5", "1x9", "3x1"):
        expected = np.fromfile(open_model / f"expected_{size}.bin", "float32").reshape(-1, 5)
        classes = " ".join(str(row.argmax()) for row in expected)
        assert f"{size.replace('x', ' x ')}: {classes}" in lines
    assert 0 <= float(last.removeprefix("largest difference: ")) < 1e-6

    program = Deployed(language, done, open_model)
    for path in open_model.iterdir():
        if path.suffix in (".so", ".bin"):
            shutil.copy(path, tmp_path)
    wrong = np.fromfile(tmp_path / "expected_1x9.bin", "float32")
    wrong[2] = np.nan
    wrong.tofile(tmp_path / "expected_1x9.bin")
    assert program.run_on(tmp_path).returncode == 1
    (tmp_path / "open.so").write_bytes(b"not a library")
    done = program.run_on(tmp_path)
    assert done.returncode == 2 and "OSError: cannot load" in done.stderr


@pytest.mark.unguarded  # what ends at a guard page is aligned as its elements are
def test_wrapper_for_cpp(model: Path, tmp_path: Path) -> None:
    """The C++ header: values own what they hold, results convert, errors are exceptions of their kind."""
    if shutil.which("c++") is None:
        pytest.skip("C++: this machine lacks c++")
    source = Path(__file__).with_name("wrapper.cpp")
    binary = tmp_path / "wrapper"
    flags = "-std=c++17 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror"
    link = f"-L {model} -ltilewright_runtime -Wl,-rpath,{model}"
    done = shell(f"c++ {flags} -I {model} {source} -o {binary} {link}", model)
    assert (done.returncode, done.stderr) == (0, "")
    done = shell(f"{binary} {model}/model.so", model)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


RUST_MAIN = """
use std::path::Path;
use tilewright::Session;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = unsafe { Session::open(Path::new("model.so"))? };
    let values = [1f32; 256];
    assert!(session.run().is_err(), "an input has no value");
    session.set_input("x", &values, &[4, 64])?;
    assert_eq!(session.set_input("z", &values, &[4, 64]).unwrap_err().kind, "ValueError");
    session.run()?;
    let (probabilities, shape) = session.output::<f32>("probabilities")?;
    assert_eq!(shape, [4, 10]);
    let mut other = session.try_clone()?;
    other.set_input("x", &[0f32; 256], &[4, 64])?;
    other.run()?;
    assert_ne!(other.output::<f32>("probabilities")?.0, probabilities);
    assert_eq!(session.output::<f32>("probabilities")?.0, probabilities);
    println!("{:?}", probabilities);
    Ok(())
}
"""


def test_session_for_rust(model: Path, compiled_model: Path, tmp_path: Path) -> None:
    """The crate opens a library with its model inside, by the names of the model."""
    lacking = missing("Rust")
    if lacking:
        pytest.skip(f"Rust: this machine lacks {', '.join(lacking)}")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.rs").write_text(RUST_MAIN)
    manifest = '[package]\nname = "session"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
    (tmp_path / "Cargo.toml").write_text(
        f'{manifest}tilewright-deploy = {{ path = "{EXAMPLES / "rust"}" }}\n'
    )
    assert main(["compile", str(compiled_model / "model.onnx"), "-o", str(tmp_path / "model.so")]) == 0
    command = (
        f"cd {tmp_path} && TILEWRIGHT_RUNTIME={model} LD_LIBRARY_PATH={model} cargo run --quiet --offline"
    )
    done = shell(command, model)
    assert (done.returncode, done.stderr) == (0, "")
    expected = (
        tvm.runtime.load_module(tmp_path / "model.so").session().run({"x": np.ones((4, 64))})["probabilities"]
    )
    np.testing.assert_array_equal(np.array(json.loads(done.stdout), "float32"), expected.ravel())
