"""The linker for machines without a C compiler: what it links runs as what a compiler links."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.runtime import export
from tilewright.runtime.elf_linker import link, links
from tilewright.support.cbuild import copy_runtime, find_compiler
from tilewright.target import Target

pytestmark = [
    pytest.mark.skipif(
        not links(platform.machine(), sys.platform), reason="it links for x86-64 Linux, which this is not"
    ),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the C compiler to compare with is missing"),
]

C_SOURCE = """
#include <math.h>
#include <stdlib.h>
int counter = 5;                       /* data */
static int zeros[1000];                /* memory of zeros */
static const char* const words[] = {"one", "two"};  /* addresses in data */
extern int other(int);
int* address(void) { return &counter; }              /* an address from the table */
int (*function(void))(int) { return other; }         /* of a function of another object */
double root(double x) { counter += 1; zeros[7] += 1; return cbrt(x) + zeros[7] + other(1); }
const char* word(int i) { return words[i]; }
void* (*allocator(void))(size_t) { return malloc; }  /* and of a library */
__attribute__((weak)) int choice(void) { return 1; }
int chosen(void) { return choice(); }
__attribute__((visibility("hidden"))) int secret(void) { return 9; }
int told(void) { return secret(); }
"""
OTHER_SOURCE = "int choice(void) { return 2; } int other(int x) { return x * 10; }"


def compiled(folder: Path, name: str, source: str) -> bytes:
    """An object of C."""
    (folder / f"{name}.c").write_text(source)
    # Without exceptions' tables and checks of the stack, as LLVM's objects are.
    flags = [
        "-O1",
        "-fPIC",
        "-fno-asynchronous-unwind-tables",
        "-fno-stack-protector",
        "-fcf-protection=none",
    ]
    find_compiler().run([*flags, "-c", folder / f"{name}.c", "-o", folder / f"{name}.o"])
    return (folder / f"{name}.o").read_bytes()


def test_objects_of_c(tmp_path: Path) -> None:
    """Data, zeros, tables, calls to other objects and libraries, weak and hidden symbols: the loader takes it all."""
    objects = [compiled(tmp_path, "first", C_SOURCE), compiled(tmp_path, "second", OTHER_SOURCE)]
    (tmp_path / "made.so").write_bytes(link(objects, {"text": b"hello\0", "more": b"x" * 100}))
    library = ctypes.CDLL(str(tmp_path / "made.so"))
    root = library.root
    root.restype, root.argtypes = ctypes.c_double, [ctypes.c_double]
    assert root(27.0) == pytest.approx(3 + 1 + 10) and root(8.0) == pytest.approx(2 + 2 + 10)
    library.address.restype = ctypes.POINTER(ctypes.c_int)
    assert library.address()[0] == ctypes.c_int.in_dll(library, "counter").value == 7
    library.word.restype = ctypes.c_char_p
    assert library.word(1) == b"two" and library.chosen() == 2 and library.told() == 9
    assert ctypes.string_at(library["text"]) == b"hello"
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    library.function.restype = kind
    assert library.function()(7) == 70
    library.allocator.restype = ctypes.c_void_p
    malloc = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
    assert library.allocator() == malloc
    assert not hasattr(library, "secret")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("__thread int x; int* f(void) { return &x; }", "section .tbss|relocation"),
        ("__attribute__((constructor)) void f(void) {}", "section .init_array"),
        ("int choice(void) { return 3; }", "choice is defined twice"),
    ],
)
def test_what_is_not_linked(source: str, message: str, tmp_path: Path) -> None:
    """What it does not know is refused, never linked wrongly."""
    objects = [compiled(tmp_path, "second", OTHER_SOURCE), compiled(tmp_path, "odd", source)]
    with pytest.raises(ValueError, match=message):
        link(objects, {})


def test_objects_for_another_machine() -> None:
    """They are refused."""
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm -mtriple=aarch64-linux-gnu", name="add")
    with pytest.raises(ValueError, match="code for another machine"):
        link(module.object_codes(), {})


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were no C compiler."""
    monkeypatch.setattr(export, "has_compiler", lambda triple="": False)


def network(rows: Any) -> tvm.IRModule:
    """A convolution, which runs in parallel, and functions of the C library's kind."""
    x = relay.var("x", shape=(rows, 3, 32, 32))
    weight = np.random.default_rng(0).standard_normal((16, 3, 3, 3)).astype("float32")
    features = relay.nn.relu(relay.nn.conv2d(x, relay.const(weight), padding=(1, 1)))
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(relay.tanh(features)))
    body = relay.Tuple([relay.nn.softmax(pooled), relay.erf(pooled)])
    return tvm.IRModule.from_expr(relay.Function([x], body, attrs={"output_tensor_names": ["p", "e"]}))


def built(executor: str) -> Any:
    """The network, compiled."""
    if executor == "vm":
        return relay.vm.compile(network(relay.Any()), "llvm")
    target = Target("llvm -interface-api=packed") if executor == "aot" else "llvm"
    return relay.build(network(2), target, executor=executor)


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_models(executor: str, tmp_path: Path, no_compiler: None) -> None:
    """The library gives what the model gives in the process that compiled it, and runs from C as well."""
    library = built(executor)
    path = tmp_path / "model.so"
    library.export_library(str(path))
    x = np.random.default_rng(1).standard_normal((2, 3, 32, 32)).astype("float32")
    expected = library.session().run({"x": x})
    loaded = tvm.runtime.load_module(path)
    found = loaded.session().run({"x": x})
    assert list(found) == ["p", "e"]
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    assert not loaded._address_of("__tilewright_bind_host")  # it has no runtime inside

    copy_runtime(tmp_path)
    source = Path(__file__).with_name("csrc") / "session.c"
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", tmp_path]
    runtime = ["-L", tmp_path, "-ltilewright_runtime", f"-Wl,-rpath,{tmp_path}", "-pthread"]
    find_compiler().run([*flags, source, "-o", tmp_path / "session", *runtime])
    done = subprocess.run([tmp_path / "session", path, "2"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    values = (np.arange(x.size, dtype="float32") / 4).reshape(x.shape)
    expected = loaded.session().run({"x": values})
    lines = dict(line.split(": ") for line in done.stdout.splitlines() if ": " in line)
    for name, value in expected.items():
        np.testing.assert_array_equal(np.array(lines[name].split(), "float32"), value.ravel())


def test_a_function_that_calls_the_registry(tmp_path: Path, no_compiler: None) -> None:
    """Its slot is data of the library, and errors of its checks arrive."""
    a = te.placeholder((4,), name="a")
    b = te.extern(
        (4,), [a], lambda ins, outs: tvm.tir.call_packed("test.elf_linker", ins[0], outs[0]), name="b"
    )
    seen = []

    @tvm.register_func("test.elf_linker", override=True)
    def called(given: Any, made: Any) -> None:
        seen.append(given.numpy())
        made.copyfrom(given.numpy() * 2)

    tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="twice").export_library(str(tmp_path / "f.so"))
    function = tvm.runtime.load_module(tmp_path / "f.so")["twice"]
    out = tvm.nd.empty((4,), "float32")
    function(tvm.nd.array(np.arange(4, dtype="float32")), out)
    np.testing.assert_array_equal(out.numpy(), [0, 2, 4, 6])
    assert len(seen) == 1
    with pytest.raises(ValueError, match="dimension 0 of argument 0"):
        function(tvm.nd.empty((5,), "float32"), out)


def test_options_are_for_compilers(tmp_path: Path, no_compiler: None) -> None:
    """They cannot be obeyed, and are not ignored."""
    library = built("graph")
    with pytest.raises(ValueError, match="-s: options are for a C compiler, and none was found"):
        library.lib.export_library(str(tmp_path / "m.so"), options=["-s"])
