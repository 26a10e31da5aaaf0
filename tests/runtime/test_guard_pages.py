"""With guard pages, an access outside of a tensor ends the process where it happens, wherever its memory is."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.guarded import run_guarded

from tilewright.support.options import guard_pages

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no guard pages on Windows")

_TENSOR = """
import ctypes, sys
import numpy as np
import tilewright as tvm

array = tvm.nd.array(np.arange(13, dtype=sys.argv[1]))
place = array.memory_range()
assert array.numpy().tolist() == list(range(13))
"""


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_the_element_behind_the_last_cannot_be_read(dtype: str) -> None:
    """The last byte of a tensor is the last of its page, whatever its size."""
    script = _TENSOR + "ctypes.c_uint8.from_address(place.stop - 1).value\nprint('inside', flush=True)\n"
    done = run_guarded(script + "ctypes.c_uint8.from_address(place.stop).value", dtype)
    assert done.stdout == "inside\n" and done.returncode == -signal.SIGSEGV


def test_the_element_before_the_first_cannot_be_read() -> None:
    """That is the other mode: the first byte of a tensor is the first of its page."""
    script = _TENSOR + "ctypes.c_uint8.from_address(place.start).value\nprint('inside', flush=True)\n"
    done = run_guarded(script + "ctypes.c_uint8.from_address(place.start - 1).value", "float32", mode="start")
    assert done.stdout == "inside\n" and done.returncode == -signal.SIGSEGV


@pytest.mark.parametrize(("mode", "place"), [("end", "place.start - 1"), ("start", "place.stop")])
def test_a_write_beside_a_tensor_is_found_when_it_is_freed(mode: str, place: str) -> None:
    """What is left of the page on the other side has a pattern that nobody may change."""
    script = (
        _TENSOR + f"ctypes.c_uint8.from_address({place}).value = 7\nprint('wrote', flush=True)\ndel array"
    )
    done = run_guarded(script, "float32", mode=mode)
    assert done.stdout == "wrote\n" and done.returncode == -signal.SIGABRT
    assert "memory was written outside of a tensor of 52 bytes" in done.stderr


def test_a_tensor_without_elements_cannot_be_read() -> None:
    """Its address is that of a guard page."""
    script = """
import sys
import tilewright as tvm
from tilewright import te
data = te.placeholder((te.size_var("n"),), name="data")
made = te.compute((1,), lambda i: data[i] + 1.0)
function = tvm.build(te.create_schedule(made.op), [data, made], "llvm")
function(tvm.nd.empty((int(sys.argv[1]),)), tvm.nd.empty((1,)))
print("ran", flush=True)
"""
    assert run_guarded(script, "1").stdout == "ran\n"
    assert run_guarded(script, "0").returncode == -signal.SIGSEGV


_BEHIND = """
import sys
import numpy as np
import tilewright as tvm
from tilewright import te, tir

size = 100_003  # more than fits the stack
def copied(ins, outs):
    builder = tir.ir_builder.create()
    space = builder.allocate("float32", size, name="space", scope="global")
    source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
    with builder.for_range(0, size, name="i") as i:
        space[i] = source[i]
    with builder.for_range(0, size, name="j") as j:
        target[j] = space[j + builder.buffer_ptr(ins[1])[0]]
    return builder.get()
data = te.placeholder((size,), name="data")
shift = te.placeholder((1,), "int32", name="shift")
made = te.extern((size,), [data, shift], copied, name="made", dtype="float32")
function = tvm.build(te.create_schedule(made.op), [data, shift, made], "llvm")
given = tvm.nd.array(np.ones(size, "float32")), tvm.nd.array(np.array([int(sys.argv[1])], "int32"))
function(*given, tvm.nd.empty((size,)))
print("ran", flush=True)
"""


def test_workspaces_of_kernels_are_guarded() -> None:
    """A kernel that reads 64 bytes behind its workspace is stopped; nearer ones are covered by the alignment that
    generated code relies on."""
    assert run_guarded(_BEHIND, "0").stdout == "ran\n"
    assert run_guarded(_BEHIND, "16").returncode == -signal.SIGSEGV


_GRAPH = """
import ctypes, sys
import numpy as np
import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor

x = relay.var("x", shape=(33,), dtype="int8")
y = relay.cumsum(relay.cumsum(x) + relay.const(1, "int8"))
with tvm.transform.PassContext(opt_level=0):
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], y)), "llvm")
module = graph_executor.GraphModule(library["default"](tvm.cpu()))
module.set_input("x", np.ones(33, "int8"))
module.run()
place = module.get_output(0).memory_range() if sys.argv[1] == "output" else module.get_input(0).memory_range()
assert module.get_output(0).numpy()[0] == 2
print("ran", flush=True)
ctypes.c_uint8.from_address(place.stop).value
"""


@pytest.mark.parametrize("which", ["input", "output"])
def test_tensors_of_a_graph_are_guarded_one_by_one(which: str) -> None:
    """Not only the arena that they would share."""
    done = run_guarded(_GRAPH, which)
    assert done.stdout == "ran\n" and done.returncode == -signal.SIGSEGV


_MACHINE = """
import ctypes
import numpy as np
import tilewright as tvm
from tilewright import relay

x = relay.var("x", shape=(relay.Any(),), dtype="int8")
program = tvm.IRModule.from_expr(relay.Function([x], relay.cumsum(x)))
machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(program, "llvm"), tvm.cpu())
result = machine.run(tvm.nd.array(np.ones(33, "int8")))
assert result.numpy()[-1] == 33
print("ran", flush=True)
ctypes.c_uint8.from_address(result.memory_range().stop).value
"""


def test_tensors_of_the_virtual_machine_are_guarded() -> None:
    """Their memory is as large as they are, and not taken from a pool."""
    done = run_guarded(_MACHINE)
    assert done.stdout == "ran\n" and done.returncode == -signal.SIGSEGV


@pytest.mark.parametrize(
    ("value", "mode"),
    [("1", "end"), ("end", "end"), ("START", "start"), ("0", None), ("off", None), ("", None)],
)
def test_the_variable_is_read_as_documented(
    value: str, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 and end mean the end; what means no elsewhere means no here."""
    monkeypatch.setenv("TILEWRIGHT_GUARD_PAGES", value)
    assert guard_pages() == mode


def test_the_variable_is_read_once() -> None:
    """Memory is freed the way it was allocated, whatever becomes of the variable."""
    script = (
        "import os, tilewright as tvm\na = tvm.nd.empty((3,))\n"
        "os.environ['TILEWRIGHT_GUARD_PAGES'] = '0'\ndel a\nprint('freed')\n"
    )
    done: subprocess.CompletedProcess[str] = run_guarded(script)
    assert (done.stdout, done.returncode) == ("freed\n", 0)
