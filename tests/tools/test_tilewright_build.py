"""The build backend: what it asks for, and that an installation without a C compiler works."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tilewright

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def backend():
    """The backend, loaded from its file as pip does."""
    pytest.importorskip("setuptools", minversion="77")
    spec = importlib.util.spec_from_file_location("tilewright_build", ROOT / "tools" / "tilewright_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy_of_the_sources(folder):
    """What a build needs, copied, so that it leaves nothing in the repository."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("src", "tools"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    return folder


def test_a_machine_with_a_compiler_needs_no_other(backend, tmp_path, monkeypatch):
    """With ``cc`` on the PATH, no package is asked for."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert backend.compiler_requirements() == []


def test_a_machine_without_a_compiler_asks_for_zig(backend, monkeypatch):
    """Without one, the ``ziglang`` package is asked for."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    assert backend.compiler_requirements() == ["ziglang>=0.13"]


def test_the_backend_leaves_the_imported_package_alone(backend):
    """Loading the compiler finder for a build does not replace modules of the running program."""
    import tilewright.support.errors as before

    cbuild = backend.load_cbuild()
    assert sys.modules["tilewright.support.errors"] is before
    assert "numpy" not in vars(cbuild)
    assert cbuild.runtime_sources()


def test_library_is_compiled(backend, tmp_path):
    """The runtime's sources become one shared library that exports its functions."""
    if shutil.which("cc") is None and importlib.util.find_spec("ziglang") is None:
        pytest.skip("no C compiler on this machine")
    library = backend.build_library(tmp_path)
    assert library.parent == tmp_path
    assert b"tilewright_" in library.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="hides the compiler in the way of Unix")
def test_install_without_a_compiler(tmp_path):
    """``pip install .`` where PATH has no compiler builds the runtime with zig, into a ``py3-none`` wheel."""
    sources = copy_of_the_sources(tmp_path)
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    environment = {**os.environ, "PATH": str(home / "bin")}
    environment.pop("PYTHONPATH", None)
    wheels = tmp_path / "wheels"
    command = [
        str(home / "bin" / "python"),
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "-w",
        str(wheels),
        str(sources),
    ]
    built = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert [wheel.name for wheel in wheels.iterdir()] == [
        f"tilewright-{tilewright.__version__}-py3-none-{platform}.whl"
    ]
    install = [
        str(home / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        *wheels.glob("*.whl"),
    ]
    subprocess.run(install, env=environment, check=True, capture_output=True)
    program = (
        "import ctypes, importlib.util, pathlib;"
        "root = pathlib.Path(importlib.util.find_spec('tilewright').origin).parent / 'runtime';"
        "library = ctypes.CDLL(str(next(root.glob('*tilewright_runtime*'))));"
        "assert library.tilewright_num_threads() >= 1; print(root)"
    )
    # Loading needs no package but the wheel itself: find_spec does not run the package.
    ran = subprocess.run(
        [str(home / "bin" / "python"), "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        cwd=home,
    )
    assert ran.returncode == 0, ran.stderr
    assert str(home) in ran.stdout


@pytest.mark.slow
def test_editable_install_runs_from_the_sources(tmp_path):
    """``pip install -e .`` compiles nothing and finds the package where its sources are."""
    sources = copy_of_the_sources(tmp_path)
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    install = [str(python), "-m", "pip", "install", "--no-deps", "-e", str(sources)]
    subprocess.run(install, env=environment, check=True, capture_output=True)
    program = "import importlib.util; print(importlib.util.find_spec('tilewright').origin)"
    found = subprocess.run(
        [str(python), "-c", program], env=environment, capture_output=True, text=True, check=True, cwd=home
    )
    package = sources / "src" / "tilewright"
    assert Path(found.stdout.strip()).parent == package
    assert not list((package / "runtime").glob("*tilewright_runtime*"))
