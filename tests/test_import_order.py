"""What a program means never depends on which modules were imported before it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

from tilewright.ir import GlobalVar, save_json

PRELUDES = (
    "",
    "import tilewright.arith, tilewright.tir",
    "import tilewright.topi",
    "import tilewright.relay, tilewright.driver, tilewright.contrib, tilewright.testing, tilewright.as_tvm",
)
"""What is imported before the programs."""

PROGRAMS = {
    "equality of types": """
from tilewright.ir.expr import Var
from tilewright.ir.tensor_type import TensorType
n, m = Var("n", "int32"), Var("m", "int32")
print(TensorType((n + 1,)) == TensorType((1 + n,)), hash(TensorType((n + 1,))) == hash(TensorType((1 + n,))))
print(TensorType((n * 2,)) == TensorType((n + n,)), TensorType((n,)) == TensorType((m,)))
""",
    "text of types": """
from tilewright.ir import FuncType, GlobalTypeVar, TensorType, TypeVar
a = TypeVar("a")
print(FuncType([TensorType((2, 3)), a], GlobalTypeVar("List")(a), [a]), TensorType((1,)).astext())
""",
    "arithmetic of tensors": """
from tilewright.te.operation import placeholder
A, B, S = placeholder((3, 1), name="A"), placeholder((4,), name="B"), placeholder((), name="S")
for made in (A + B, 2 * A, A - B, A / B, -A, A.astype("int32"), S + 1.0, S * A):
    print(type(made).__name__, made.name if hasattr(made, "name") else made,
          getattr(made, "shape", None), made.op.tag if hasattr(made, "op") else None)
    print(made.op.body if hasattr(made, "op") else made)
""",
    "calls of global variables": """
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.type import GlobalTypeVar
from tilewright.ir.expr import Var
f, g = GlobalVar("f"), GlobalVar("g")
for call in (f(), f(g), f(f(), g), f(1, Var("x", "int32"))):
    print(type(call).__module__, type(call).__name__, call)
print(Constructor("Nil", [], GlobalTypeVar("List"))())
""",
    "text of modules": """
from tilewright.ir.module import IRModule
print(repr(IRModule()), IRModule().astext(), IRModule().script())
from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.type import GlobalTypeVar
t = GlobalTypeVar("T")
print(IRModule({}, {t: TypeData(t, [], [Constructor("C", [], t)])}))
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Evaluate
loops = IRModule({"main": PrimFunc([], Evaluate(0))})
print(loops, loops.astext(), loops.script("tir"))
""",
    "modules of expressions": """
from tilewright.ir.module import IRModule
from tilewright.ir.global_var import GlobalVar
print(IRModule.from_expr(GlobalVar("f")()))
module = IRModule()
module.import_from_std("gradient.rly")
print(module)
""",
    "stores to buffers": """
from tilewright.ir.buffer import decl_buffer
A = decl_buffer((4,), name="A")
store = A.vstore(0, 1.0)
print(type(store).__module__, type(store).__name__, store)
""",
    "verification": """
from tilewright.ir.module import IRModule
from tilewright.ir.transform import module_pass
from tilewright.ir.buffer import decl_buffer
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import BufferStore, Evaluate
from tilewright.ir.expr import FloatImm
A = decl_buffer((4,), "int32", name="A")
@module_pass(opt_level=0, name="breaks")
def breaks(module, context):
    return IRModule({"main": PrimFunc([A], BufferStore(A, FloatImm("float32", 1), [0]))})
try:
    print(breaks(IRModule({"main": PrimFunc([], Evaluate(0))})))
except Exception as error:
    print(type(error).__name__, error)
""",
    "verification of graphs": """
from tilewright.ir.module import IRModule
from tilewright.ir.transform import module_pass
from tilewright.relay.expr import Var
from tilewright.relay.function import Function
@module_pass(opt_level=0, name="breaks")
def breaks(module, context):
    return IRModule({"main": Function([], Var("free"))})
try:
    print(breaks(IRModule()))
except Exception as error:
    print(type(error).__name__, error)
""",
    "operators, nodes and attributes by name": """
from tilewright.ir import Op, load_json, make_node, save_json
relu = Op.get("nn.relu")
print(relu, relu.support_level, len(Op.list_op_names()), make_node("relay.attrs.CastAttrs", dtype="int8").dtype)
print(load_json({!r}))
try:
    Op.get("nowhere")
except Exception as error:
    print(error)
""".format(save_json(GlobalVar("f")())),
    "names of TVM": """
import tilewright as tvm
print(tvm.transform.PassContext, tvm.tir.stmt_functor.substitute.__module__, tvm.te.tensor.ComputeOp)
print(tvm.runtime.convert([1, 2]), tvm.error.TVMError, hasattr(tvm, "nonsense"), hasattr(tvm.topi, "cuda"))
""",
}


RUNNER = """
import contextlib, io, json, os, sys, traceback
programs = json.load(sys.stdin)
prelude = programs.pop("prelude")
exec(prelude, {})
printed = {}
for name, program in programs.items():
    # A fork of the process has what the prelude imported, and nothing of the programs before.
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            try:
                exec(program, {})
            except BaseException:
                traceback.print_exc(file=text)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(text.getvalue())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        printed[name] = pipe.read()
    os.waitpid(child, 0)
print(json.dumps(printed))
"""


@functools.cache
def _printed(prelude: str) -> dict[str, str]:
    """What each program prints after the prelude."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps({"prelude": prelude, **PROGRAMS}),
        capture_output=True,
        text=True,
        env={**os.environ, "TILEWRIGHT_CHECK": "1"},
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, str] = json.loads(done.stdout)
    return printed


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each program runs in a fork")
@pytest.mark.parametrize("prelude", PRELUDES[1:])
def test_imports_change_nothing(prelude: str) -> None:
    """Every program prints the same, whatever was imported first."""
    expected = _printed("")
    assert set(expected) == set(PROGRAMS)
    for name, text in expected.items():
        assert text and "Traceback" not in text, (name, text)
    assert _printed(prelude) == expected
