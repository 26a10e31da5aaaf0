"""Nothing is left of a module that nobody refers to: neither memory nor mappings, however often one comes and goes."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.runtime import GraphExecutorFactory, cpu, load_module

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")

_MEASURE = """
import gc, mmap, pathlib, sys, tempfile
import numpy as np
import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import graph_executor

kind, cycles = sys.argv[1], int(sys.argv[2])

def model():
    x = relay.var("x", shape=(1, 400))
    weight = np.ones((400, 400), "float32")
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(weight)))))

def use(library):
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.set_input("x", np.ones((1, 400), "float32"))
    module.run()
    assert module.get_output(0).numpy()[0, 0] == 400

def build():
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1, name="b")
    function = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    given, made = tvm.nd.array(np.zeros(64, "float32")), tvm.nd.empty((64,))
    function(given, made)
    assert made.numpy()[5] == 1

if kind == "build":
    step = build
elif kind == "relay":
    step = lambda: use(relay.build(model(), "llvm"))
else:
    path = str(pathlib.Path(tempfile.mkdtemp()) / f"model.{kind}")
    relay.build(model(), "llvm").export_library(path)
    step = lambda: use(tvm.runtime.load_module(path))

def state():
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * mmap.PAGESIZE, len(pathlib.Path("/proc/self/maps").read_text().splitlines())

for _ in range(40):
    step()
before = state()
for _ in range(cycles - 40):
    step()
after = state()
print(after[0] - before[0], after[1] - before[1])
"""


def _growth(kind: str, cycles: int) -> tuple[int, int]:
    """By how many bytes, and how many mappings, a process has grown between its 40th cycle and its last."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, kind, str(cycles)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    resident, mappings = done.stdout.split()
    return int(resident), int(mappings)


@pytest.mark.parametrize("kind", ["build", "so", "tar"])
def test_flat_after_200_cycles(kind: str) -> None:
    resident, mappings = _growth(kind, 200)
    assert resident < 4 << 20
    assert mappings < 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["build", "so", "tar", "relay"])
def test_flat_after_1000_cycles(kind: str) -> None:
    resident, mappings = _growth(kind, 1000)
    assert resident < 6 << 20
    assert mappings < 8


def _library() -> relay.backend.executor_factory.GraphExecutorFactoryModule:
    x = relay.var("x", shape=(4,))
    return relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")


def test_what_keeps_a_library() -> None:
    """Its functions and executors do; nothing else."""
    library = _library()
    seen = weakref.ref(library.lib)
    executor = library["default"](cpu())
    executor.set_input("x", np.zeros(4, "float32"))
    make = library["default"]
    del library
    assert seen() is not None
    del make
    gc.collect()
    assert seen() is None
    executor.run()  # the code that it calls is still there
    np.testing.assert_array_equal(executor.get_output(0).numpy(), np.ones(4, "float32"))


def test_a_function_of_a_library_that_nobody_else_keeps(tmp_path: Path) -> None:
    _library().export_library(str(tmp_path / "model.tar"))
    executor = load_module(tmp_path / "model.tar")["default"](cpu())
    executor.run()
    assert executor.get_output(0).numpy()[0] == 1


def test_a_factory_whose_library_is_gone() -> None:
    library = _library()
    factory = library.module
    assert isinstance(factory, GraphExecutorFactory)
    del library
    gc.collect()
    with pytest.raises(RuntimeError, match="kernels of the model default are gone"):
        factory["default"]
    with pytest.raises(RuntimeError, match="kernels of the model default are gone"):
        factory.create(cpu())


def test_a_function_keeps_its_code() -> None:
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")
    function = tvm.build(te.create_schedule(b.op), [a, b], "llvm").entry_func
    gc.collect()
    given, made = tvm.nd.array(np.ones(8, "float32")), tvm.nd.empty((8,))
    function(given, made)
    assert made.numpy()[0] == 2
