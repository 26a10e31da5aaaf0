"""C++ as LLVM IR."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import clang
from tilewright.support.cbuild import CompilerError

TWICE = """define i32 @twice(ptr %to, ptr %from) {
  %value = load float, ptr %from
  %sum = fadd float %value, %value
  store float %sum, ptr %to
  ret i32 0
}
"""


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """A command that takes clang's arguments, keeps them and the source beside itself, and writes ``TWICE``."""
    program = tmp_path / "compiler.py"
    program.write_text(
        "import pathlib, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "(here / 'arguments').write_text(' '.join(sys.argv[1:-2]))\n"
        "(here / 'source').write_text(pathlib.Path(sys.argv[-1]).read_text())\n"
        f"pathlib.Path(sys.argv[-2]).write_text({TWICE!r})\n"
    )
    return f"{sys.executable} {program}"


def test_text_and_file(compiler: str, tmp_path: Path) -> None:
    """A text is compiled as C++, a path as the file it names; the result is given and, if wanted, written."""
    text = clang.create_llvm('extern "C" int f();', tmp_path / "out.ll", ["-march=native"], compiler)
    assert text == TWICE == (tmp_path / "out.ll").read_text()
    assert (tmp_path / "arguments").read_text() == "-O3 -emit-llvm -S -march=native -o"
    assert (tmp_path / "source").read_text() == 'extern "C" int f();'
    (tmp_path / "given.cc").write_text("// the file")
    assert clang.create_llvm([str(tmp_path / "given.cc")], cc=compiler) == TWICE
    assert (tmp_path / "source").read_text() == "// the file"


def test_imported_by_a_schedule(compiler: str) -> None:
    """A call of the function compiles and runs when a stage imports the text."""
    a = te.placeholder((1,), name="A")

    def body(ins: list[tvm.tir.Buffer], outs: list[tvm.tir.Buffer]) -> tvm.tir.PrimExpr:
        return tvm.tir.call_extern("int32", "twice", outs[0].access_ptr("w"), ins[0].access_ptr("r"))

    b = te.extern((1,), [a], body, dtype="float32")
    c = te.compute((4,), lambda i: b[0] + i.astype("float32"), name="C")
    schedule = te.create_schedule(c.op)
    schedule[c].pragma(c.op.axis[0], "import_llvm", clang.create_llvm("", cc=compiler))
    result = tvm.nd.empty((4,))
    tvm.build(schedule, [a, c], "llvm")(tvm.nd.array(np.array([3], "float32")), result)
    assert result.numpy().tolist() == [6, 7, 8, 9]


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several inputs are refused; without a compiler the error says what to install."""
    with pytest.raises(CompilerError, match="one input, not 2"):
        clang.create_llvm(["a.cc", "b.cc"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert clang.find_clang(required=False) == []
    with pytest.raises(CompilerError, match="pip install ziglang"):
        clang.create_llvm("")
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert clang.find_clang() == ["/bin/clang", "/bin/zig c++ -mcpu=baseline"]
