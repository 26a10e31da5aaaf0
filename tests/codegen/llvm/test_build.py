"""From module to code: sources, files, other machines, errors."""

from __future__ import annotations

import re
import struct
import subprocess
import sys

import numpy as np
import pytest

import tilewright.codegen.llvm.build as build_module
from tilewright.codegen import build
from tilewright.codegen.llvm.machine import LoopsLeft
from tilewright.ir.expr import Add, Call, IntImm, Load, Ramp, StringImm, Var
from tilewright.ir.module import IRModule
from tilewright.ir.type import PrimType
from tilewright.runtime.loading import load_module
from tilewright.support.errors import CodegenError, InternalError, TargetError
from tilewright.tir import op
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt, Evaluate, For, ForKind, SeqStmt, Store


def scaled_sum(kit):
    """y[i] = x[i] * 2 + y[i] in vectors of eight, with a math function beside."""
    x, y, i = kit.buffer("x", 64), kit.buffer("y", 64), Var("i")
    index = Ramp(i * 8, 1, 8)
    load = lambda buffer: Load("float32x8", buffer.data, index)
    value = load(x) * op.const(2.0, "float32x8") + load(y) + Call("float32x8", "tir.tanh", [load(x)])
    return [x, y], For(i, 0, 8, ForKind.PARALLEL, Store(y.data, value, index))


def test_sources(kit):
    """The LLVM IR, the assembly, and what was written before LLVM's optimisation can be read."""
    module = kit.build(*scaled_sum(kit), "llvm -mcpu=haswell")
    assert re.search(r"define .*i32 @__tvm_ffi_f\(ptr", module.get_source("ll"))
    assert module.get_source() == module.get_source("ll")
    assert "vfmadd" in module.get_source("asm") and module.get_source("s") == module.get_source("asm")
    assert "!alias.scope" in module.get_source("unoptimized")
    with pytest.raises(ValueError, match="no source in the format 'cu'"):
        module.get_source("cu")


def test_saving(kit, tmp_path):
    """.ll, .s, .bc and .o hold what they should."""
    module = kit.build(*scaled_sum(kit), "llvm -mcpu=haswell")
    for suffix in ("ll", "s", "bc", "o"):
        module.save(str(tmp_path / f"f.{suffix}"))
    assert (tmp_path / "f.ll").read_text() == module.get_source("ll")
    assert "__tvm_ffi_f:" in (tmp_path / "f.s").read_text()
    assert (tmp_path / "f.bc").read_bytes()[:4] == b"BC\xc0\xde"
    assert (tmp_path / "f.o").read_bytes() == module.object_code()


def test_an_exported_library_runs(kit, tmp_path):
    """What export_library writes is loaded again and computes the same."""
    module = kit.build(*scaled_sum(kit))
    module.export_library(str(tmp_path / "f.so"))
    x, y = np.linspace(-2, 2, 64, dtype="float32"), np.ones(64, "float32")
    expected, got = y.copy(), y.copy()
    module["f"](x, expected)
    load_module(str(tmp_path / "f.so"))["f"](x, got)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_allclose(got, x * 2 + 1 + np.tanh(x), rtol=1e-6)


MACHINES = {
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512": 62,
    "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=cortex-a72": 183,
    "llvm -mtriple=armv7a-unknown-linux-gnueabihf -mcpu=cortex-a9": 40,
    "llvm -mtriple=riscv64-unknown-linux-gnu": 243,
    "llvm -mtriple=riscv32-unknown-elf -mcpu=generic-rv32 -mattr=+m,+f,+d": 243,
}


@pytest.mark.parametrize("target", MACHINES)
def test_objects_for_other_machines(kit, target):
    """Each is an ELF object for its machine, with the function's symbol in it."""
    module = kit.build(*scaled_sum(kit), target)
    code = module.object_code()
    assert code[:4] == b"\x7fELF" and struct.unpack("<H", code[18:20])[0] == MACHINES[target]
    assert b"__tvm_ffi_f\0" in code and b"__tilewright_functions\0" in code
    if "x86_64" not in target:
        with pytest.raises(RuntimeError, match="cannot run 'f'"):
            module["f"]


@pytest.mark.parametrize("features", ["", " -mattr=+simd128"])
def test_webassembly(kit, features):
    """WebAssembly has a magic number of its own, and vectors where they are asked for."""
    module = kit.build(*scaled_sum(kit), f"llvm -mtriple=wasm32-unknown-unknown{features}")
    assert module.object_code()[:8] == b"\0asm\1\0\0\0"
    assert ("f32x4.mul" in module.get_source("asm")) == bool(features)


def test_arm_code_uses_its_vectors(kit):
    """AArch64 multiplies and adds in one vector instruction."""
    assembly = kit.build(*scaled_sum(kit), "llvm -mtriple=aarch64-linux-gnu").get_source("asm")
    assert "fmla" in assembly and ".4s" in assembly


def test_dot_products_on_arm(kit):
    """sdot is there for processors that have it, and refused for others."""
    a, b, c = kit.buffer("a", 16, "int8"), kit.buffer("b", 16, "int8"), kit.buffer("c", 4, "int32")
    load = lambda buffer, kind, lanes: Load(f"{kind}x{lanes}", buffer.data, Ramp(0, 1, lanes))
    operands = [load(c, "int32", 4), load(a, "int8", 16), load(b, "int8", 16)]
    store = Store(
        c.data, op.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.sdot", 3, *operands), Ramp(0, 1, 4)
    )
    base = "llvm -mtriple=aarch64-linux-gnu"
    assert "sdot" in kit.build([a, b, c], store, f"{base} -mattr=+dotprod").get_source("asm")
    with pytest.raises(CodegenError, match="sdot"):
        kit.build([a, b, c], store, base)


def test_features_travel_with_the_code(kit):
    """The object names the features that it needs."""
    code = kit.build(*scaled_sum(kit), "llvm -mcpu=haswell").object_code()
    assert b"avx2," in code and b"avx512f" not in code


def test_functions_call_one_another(kit):
    """A function with C parameters is called directly by another of the module, by its name."""
    x, y, n = Var("x", "float32"), kit.buffer("y", 1), Var("n", "float32")
    twice = PrimFunc(
        [x], Evaluate(op.ret(Add(x, x))), ret_type=PrimType("float32"), attrs={"global_symbol": "twice"}
    )
    module = kit.packed([y, n], Store(y.data, op.call_pure_extern("float32", "twice", n), 0))
    module["twice"] = twice
    result = np.zeros(1, "float32")
    build(module, "llvm")["f"](result, 2.5)
    assert result[0] == 5.0


def test_llvm_code_can_be_linked_in(kit):
    """pragma import_llvm brings a function written as LLVM IR."""
    y = kit.buffer("y", 1, "int32")
    source = "define i32 @seventh(i32 %x) {\n  %r = mul i32 %x, 7\n  ret i32 %r\n}\n"
    store = Store(y.data, op.call_extern("int32", "seventh", IntImm("int32", 6)), 0)
    result = np.zeros(1, "int32")
    kit.build([y], AttrStmt(y.data, "pragma_import_llvm", StringImm(source), store))["f"](result)
    assert result[0] == 42
    with pytest.raises(CodegenError, match="cannot be read"):
        kit.build([y], AttrStmt(y.data, "pragma_import_llvm", StringImm("/no/such/file.ll"), store))


def test_import_llvm_twice(kit):
    """Two parts of a program may bring the same text, which is linked in once."""
    y = kit.buffer("y", 2, "int32")
    source = StringImm("define i32 @third(i32 %x) {\n  %r = mul i32 %x, 3\n  ret i32 %r\n}\n")
    stores = [
        Store(y.data, op.call_extern("int32", "third", IntImm("int32", place + 1)), place) for place in (0, 1)
    ]
    result = np.zeros(2, "int32")
    body = SeqStmt([AttrStmt(y.data, "pragma_import_llvm", source, store) for store in stores])
    kit.build([y], body)["f"](result)
    np.testing.assert_array_equal(result, [3, 6])


def test_fast_math_is_the_targets_choice(kit):
    """Only contraction is on by default; -fast-math allows everything, an option by name one thing more."""
    source = lambda target: kit.build(*scaled_sum(kit), target).get_source("unoptimized")
    assert "fadd contract <8 x float>" in source("llvm")
    assert "fadd fast <8 x float>" in source("llvm -fast-math=1")
    assert "fadd contract reassoc <8 x float>" in source("llvm -fast-math-reassoc=1")


def test_what_llvm_refuses_is_kept(kit, tmp_path, monkeypatch):
    """Text that LLVM does not take is a defect; the error says where it and the program were written."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build_module, "module_text", lambda *_: ("define nonsense", [], LoopsLeft.ANY))
    with pytest.raises(InternalError, match="failures"):
        kit.build([Var("n")], Evaluate(0))
    assert [path.read_text() for path in (tmp_path / "failures").glob("*.ll")] == ["define nonsense"]


def test_errors_before_llvm(kit):
    """Functions that were not lowered, types without arithmetic and unknown targets are refused in words."""
    y = kit.buffer("y", 1)
    raw = IRModule({"f": PrimFunc([y], Evaluate(0), attrs={"global_symbol": "f"})})
    with pytest.raises(CodegenError, match="buffer map"):
        build(raw, "llvm")
    with pytest.raises(CodegenError, match="no arithmetic"):
        kit.build([y], Store(y.data, Load("float8", y.data, 0).astype("float32"), 0))
    with pytest.raises(TargetError, match="levels 0 to 3"):
        kit.build([y], Evaluate(0), "llvm -opt-level=7")
    with pytest.raises(TargetError, match="no code generator"):
        build(raw, "stackvm")
    with pytest.raises(CodegenError, match=r"tir\.ptx_mma"):
        kit.build([y], Evaluate(op.call_intrin("float32", "tir.ptx_mma")))


def test_the_first_code_of_a_process_may_call_libm() -> None:
    """Functions of the C library are found before anything else was linked."""
    program = (
        "import numpy, tilewright as tvm\n"
        "from tilewright import te\n"
        "a = te.placeholder((2,), 'float64', name='a')\n"
        "b = te.compute((2,), lambda i: te.sin(a[i]), name='b')\n"
        "function = tvm.build(te.create_schedule(b.op), [a, b], 'llvm')\n"
        "out = tvm.nd.array(numpy.zeros(2))\n"
        "function(tvm.nd.array(numpy.array([0.5, 1.0])), out)\n"
        "numpy.testing.assert_allclose(out.numpy(), numpy.sin([0.5, 1.0]))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_scheduled_loops_are_not_searched_for_vectors(kit):
    """A program whose loops are over vectors is only simplified, and gives what LLVM's whole pipeline gives; a loop
    without vectors is vectorized by LLVM."""
    x, y = kit.buffer("x", 96), kit.buffer("y", 96)
    at = Var("i")
    texts = {}
    for lanes in (8, 1):
        place = Ramp(at * lanes, 1, lanes) if lanes > 1 else at
        value = Load(x.dtype.with_lanes(lanes), x.data, place)
        body = For(at, 0, 96 // lanes, ForKind.SERIAL, Store(y.data, value + value, place))
        module = kit.build([x, y], body, "llvm -mcpu=haswell")
        given, result = np.arange(96, dtype="float32"), np.zeros(96, "float32")
        module["f"](given, result)
        np.testing.assert_array_equal(result, given * 2)
        texts[lanes] = module.get_source("ll")
    assert all(
        "fadd contract <8 x float>" in text or "fmul contract <8 x float>" in text for text in texts.values()
    )
    assert "vector.body" in texts[1] and "vector.body" not in texts[8]
