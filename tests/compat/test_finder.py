"""TVM's modules and names are served from the tables, whichever way a program asks for them."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.compat.modules import MODULES, NAMES
from tilewright.compat.providers import PROVIDERS

SOURCE = Path(inspect.getfile(tilewright)).parent


def _entries() -> list[tuple[str, str, str, str]]:
    return [
        (path, home, *(word.split("=") if "=" in word else (word, word)))
        for table in (MODULES, NAMES)
        for path, homes in table.items()
        for home, words in homes.items()
        for word in words.split()
        if word != "*"
    ]


@pytest.mark.parametrize(("path", "home", "name", "own"), _entries())
def test_every_name_is_its_home_s(path: str, home: str, name: str, own: str) -> None:
    """A name of the table is the very object that its home defines, and ``dir`` lists it."""
    served = importlib.import_module(f"tilewright.{path}")
    assert getattr(served, name) is getattr(importlib.import_module(f"tilewright.{home}"), own)
    assert name in dir(served)


@pytest.mark.parametrize("path", [*MODULES, *PROVIDERS])
def test_the_core_has_no_file_for_it(path: str) -> None:
    """A module of the tables is in no file of the package: the table would hide it."""
    there = SOURCE / path.replace(".", "/")
    assert not there.with_suffix(".py").exists() and not any(there.glob("*.py"))


@pytest.mark.parametrize("path", NAMES)
def test_the_core_has_the_module_but_not_the_names(path: str) -> None:
    """Extra names belong to modules that exist, which do not have them themselves."""
    module = importlib.import_module(f"tilewright.{path}")
    assert module.__spec__ is not None and module.__spec__.origin is not None
    for words in NAMES[path].values():
        assert not {word.partition("=")[0] for word in words.split()} & vars(module).keys()


def _run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "program",
    [
        "import tilewright.tir.stmt_functor; found = tilewright.tir.stmt_functor.substitute",
        "from tilewright.tir import stmt_functor; found = stmt_functor.substitute",
        "from tilewright.tir.stmt_functor import substitute as found",
        "import tilewright as tvm; found = tvm.tir.stmt_functor.substitute",
        "import tilewright.as_tvm, tvm; found = tvm.tir.stmt_functor.substitute",
        "import tilewright.as_tvm; from tvm.tir.stmt_functor import substitute as found",
        "from tilewright.tir.stmt_functor import *; found = substitute",
    ],
)
def test_ways_to_ask(program: str) -> None:
    """Imports of the module, from it and from its package, and attributes that nobody imported before."""
    assert _run(f"{program}\nprint(found.__module__, found.__name__)") == "tilewright.tir.functor substitute"


def test_a_function_of_the_name_of_its_module() -> None:
    """``topi.scatter_add`` is the function, before and after the module of that name is imported."""
    program = (
        "from tilewright import topi; import importlib; first = topi.scatter_add;"
        "module = importlib.import_module('tilewright.topi.scatter_add');"
        "print(topi.scatter_add is first is module.scatter_add)"
    )
    assert _run(program) == "True"


def test_a_function_stays_when_its_module_is_imported_as_tvm_s() -> None:
    """``topi.nn.conv2d`` is the function still after names were imported from the module of that name."""
    program = (
        "import tilewright.as_tvm; from tvm.topi.nn.conv2d import conv2d_nchw; from tvm import topi;"
        "print(topi.nn.conv2d.__name__, topi.nn.conv2d_nchw is conv2d_nchw)"
    )
    assert _run(program) == "conv2d True"


def test_other_attributes() -> None:
    """What is in no table is an AttributeError; modules of the table have a text, names and no file."""
    module = importlib.import_module("tilewright.tir.stmt_functor")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        module.nonsense
    with pytest.raises(AttributeError):
        module.__file__
    assert module.__doc__ == "The module tvm.tir.stmt_functor of TVM."
    assert sorted(module.__all__) == ["ir_transform", "post_order_visit", "substitute"]


def test_core_modules_stay_what_they_are() -> None:
    """An extended module keeps its source and its own lazy names."""
    from tilewright import contrib, te

    assert "class Tensor" in inspect.getsource(te.tensor)
    assert contrib.cc is importlib.import_module("tilewright.contrib.cc")
    assert te.tensor.ComputeOp is te.ComputeOp


def test_a_provider_gives_attributes(tmp_path: Path) -> None:
    """The function is called once, with the path of the module, when the module is first asked for."""
    (tmp_path / "giving.py").write_text(
        "def give(path):\n    print('called for', path)\n    return {'answer': 42}\n"
    )
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from tilewright.compat.providers import PROVIDERS
import tilewright.compat.finder as finder
PROVIDERS["topi.computed_names"] = "giving:give"
finder._SERVED.add("topi.computed_names")
import tilewright as tvm
print(tvm.topi.computed_names.answer, tvm.topi.computed_names.__all__)
"""
    assert _run(program).splitlines() == ["called for topi.computed_names", "42 ['answer']"]


def test_nothing_is_loaded_for_a_name_that_nobody_uses() -> None:
    """Importing a module of the table loads none of its homes."""
    program = (
        "import sys, json, tilewright._ffi.base;"
        "print(json.dumps([name for name in sys.modules if name in ('tilewright.compat.ffi', 'numpy')]))"
    )
    assert json.loads(_run(program)) == []


def _imported(path: Path) -> set[str]:
    """The names that a file imports, as ``module`` and as ``module.name``, without the package's name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return {name.removeprefix("tilewright.") for name in found}


def test_the_core_uses_no_name_of_the_tables() -> None:
    """Every file imports from where a thing is defined: the tables are for programs written for TVM."""
    served = {*MODULES, *PROVIDERS}
    served |= {
        f"{path}.{word.partition('=')[0]}"
        for table in (MODULES, NAMES)
        for path, homes in table.items()
        for words in homes.values()
        for word in words.split()
    }
    # A function may have the name of its module: the function is what the core imports.
    served -= {"topi.scatter_add"}
    users = {
        str(file.relative_to(SOURCE)): sorted(names)
        for file in SOURCE.rglob("*.py")
        if (names := _imported(file) & served)
    }
    assert users == {}
