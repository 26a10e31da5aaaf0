"""The parts of ``tilewright opt``: programs from files, pipelines, and running passes."""

import pytest

from tilewright import relay, tir
from tilewright.driver import opt
from tilewright.ir.pass_text import parse_passes
from tilewright.ir.structural import structural_equal
from tilewright.ir.transform import Pass, PassContext
from tilewright.support.errors import ModelError, ParseError
from tilewright.target import Target

GRAPH = """
def @main(%x: Tensor[(4), float32]) {
  nn.relu(add(%x, 1f))
}
"""
LOOPS = """
from tvm.script import tir as T


@T.prim_func
def double(a: T.handle, b: T.handle) -> None:
    T.func_attr({"global_symbol": "double"})
    A = T.match_buffer(a, [8], dtype="float32")
    B = T.match_buffer(b, [8], dtype="float32")
    for i in T.vectorized(0, 8):
        T.store(B.data, i, T.load("float32", A.data, i) * T.float32(2), True)
"""


def test_texts_are_told_apart(tmp_path):
    """Relay and scripts are told by what they hold, whatever the suffix; both come back from their text."""
    for text, name, kind in ((GRAPH, "main", relay.Function), (LOOPS, "double", tir.PrimFunc)):
        (tmp_path / "program.txt").write_text(text)
        module = opt.programs.read_program(str(tmp_path / "program.txt"))
        assert isinstance(module[name], kind)
        again = opt.programs.program_from_text(opt.programs.program_text(module, complete=True), "again")
        assert structural_equal(module, again)


def test_a_model_has_its_parameters(small_onnx):
    """Parameters of a model are constants, so that passes can fold them."""
    module = opt.programs.read_program(small_onnx)
    assert [parameter.name_hint for parameter in module["main"].params] == ["x"]
    text = opt.programs.program_text(module, complete=True)
    assert "meta[relay.Constant][0]" in text
    assert structural_equal(module, opt.programs.program_from_text(text, "again"))
    assert "#[metadata]" in text and "#[metadata]" not in opt.programs.program_text(module, complete=False)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"  \n", "is empty"),
        ("binary.txt", b"\xff\xfe\x00", "is not text"),
        ("model.xyz", b"", "pass model_format"),
        ("broken.txt", b"def @main( {", "broken.txt:1"),
        ("broken.py", b"def f(:\n", "invalid syntax"),
    ],
)
def test_what_cannot_be_read(tmp_path, name, content, message):
    """Each says what is wrong with the file."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ModelError, ParseError), match=message):
        opt.programs.read_program(str(tmp_path / name))


@pytest.mark.parametrize("name", ["prepare", "fuse", "lower", "host", "device"])
@pytest.mark.parametrize("target", ["llvm -mcpu=skylake", "cuda"])
@pytest.mark.parametrize("level", range(5))
def test_pipelines_come_back_from_text(name, target, level):
    """Every pipeline prints as text that gives the same passes."""
    with PassContext(opt_level=level):
        passes = opt.pipelines.passes_of([name], Target(target))
    assert parse_passes(opt.pipelines.pipeline_text(passes)) == passes


def test_pipelines_go_by_the_level():
    """A pass above the level of the context is left out, also of a sequence."""
    with PassContext(opt_level=2):
        names = [str(each) for each in opt.pipelines.passes_of(["prepare"], Target("llvm"))]
    assert names.count("FoldConstant{views=true}") == 3
    assert not {"FoldScaleAxis", "ForwardFoldScaleAxis", "AlterOpLayout"} & set(names)


def test_pipelines_from_a_file(tmp_path):
    """``@`` names a file; one that is not there is an error."""
    (tmp_path / "passes").write_text("FoldConstant,  # first\nFuseOps\n")
    assert opt.pipelines.passes_from_text(f"@{tmp_path / 'passes'}") == [
        relay.transform.FoldConstant(),
        relay.transform.FuseOps(),
    ]
    with pytest.raises(ModelError, match="there is no file nowhere with passes"):
        opt.pipelines.passes_from_text("@nowhere")


def test_named_passes_run_at_every_level():
    """A pass that is asked for runs, with those that it requires, and so do the passes of a sequence."""
    convolved = """
    def @main(%x: Tensor[(1, 2, 3, 3), float32], %w: Tensor[(2, 2, 1, 1), float32]) {
      multiply(nn.conv2d(%x, %w, channels=2, kernel_size=[1, 1]), 2f)
    }
    """
    with PassContext(opt_level=0):
        module = opt.programs.program_from_text(convolved, "text")
        folded = opt.running.run_passes(module, parse_passes("FoldScaleAxis"), "llvm")
        fused = opt.running.run_passes(
            opt.programs.program_from_text(GRAPH, "text"), parse_passes("FuseOps{level=2}"), "llvm"
        )
    assert "multiply(%w" in str(folded)
    assert "Primitive=1" in str(fused)


def test_every_pass_is_described():
    """Each of the compiler's passes has a line of its own and a sentence; the list is at most 80 columns wide."""
    listed = opt.listing.describe_passes()
    assert {one.name for one in listed} >= {"FuseOps", "FoldScaleAxis", "tir.VectorizeLoop", "PrintIR"}
    assert {one.level for one in listed} == {"relay", "tir"}
    own = [name for name, kind in Pass.registry.items() if kind.__module__.startswith("tilewright.")]
    assert sorted(one.name for one in listed) == sorted(own)
    # A dataclass without a docstring gets one that repeats its fields.
    assert [one.name for one in listed if f"{one.name.rpartition('.')[2]}(" in one.summary] == []
    text = opt.listing.pass_list()
    assert max(map(len, text.splitlines())) <= 80
    assert "  FuseOps{fuse_opt_level=-1, views=false}\n" in text
    assert "  tir.ThreadSync{storage_scope}\n" in text and "tir.Apply{ftransform=<function>}" in text
