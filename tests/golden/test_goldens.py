"""What passes make of small programs, as text: the files under ``relay/`` and ``tir/``, a folder for each pass.

A case runs its passes on the program before. The result must be the text in the file, must be read back from its own
text, and must compute the same on random arguments; ``--update-goldens`` writes the text anew, and only that.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.golden.golden_file import GoldenCase, read_case
from tests.golden.oracle import assert_same_results

from tilewright.driver.opt.programs import program_from_text, program_text
from tilewright.driver.opt.running import run_passes, verify_program
from tilewright.ir.module import IRModule
from tilewright.ir.pass_text import parse_passes
from tilewright.ir.transform import ModulePass, Pass, PassContext
from tilewright.relay.dataflow_pattern import is_op, wildcard
from tilewright.relay.infer import infer_module
from tilewright.relay.op.contrib import register_pattern_table

FOLDER = Path(__file__).parent
PATHS = sorted(FOLDER.glob("*/*/*.txt"))

PASSES = {
    "relay": """
        SimplifyInference FoldConstant FoldScaleAxis FuseOps CombineParallelConv2D CombineParallelDense
        EliminateCommonSubexpr CanonicalizeOps CanonicalizeCast AlterOpLayout ConvertLayout ToANormalForm
        ToGraphNormalForm ToBasicBlockNormalForm SimplifyExpr FuseAttention Inline LambdaLift PartitionGraph
        MergeComposite DynamicToStatic ToMixedPrecision PlanDevices
    """,
    "tir": """
        StorageFlatten VectorizeLoop UnrollLoop LoopPartition StorageRewrite InjectDoubleBuffer ThreadSync
        LowerThreadAllreduce SplitHostDevice MakePackedAPI LowerTVMBuiltin Simplify RemoveNoOp HoistIfThenElse
        RewriteUnsafeSelect NarrowDataType BlockLongSums
    """,
}
TWICE = ("FuseOps", "FoldScaleAxis", "VectorizeLoop", "LoopPartition")

register_pattern_table(
    "golden",
    lambda: [
        ("golden.dense_bias", is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard()))
    ],
)


def run_case(case: GoldenCase) -> tuple[IRModule, IRModule]:
    """The modules before and after."""
    before = program_from_text(case.before, str(case.path))
    with PassContext(opt_level=int(case.settings.get("level", "3"))):
        after = run_passes(
            before, parse_passes(case.settings["passes"]), case.settings.get("target", "llvm -mcpu=skylake")
        )
    return before, after


def check_case(case: GoldenCase, update: bool) -> None:
    """Run a case; a difference is an AssertionError, or written to the file where it is to be updated."""
    before, after = run_case(case)
    verify_program(after)
    if "not run" not in case.settings:
        assert_same_results(before, after, float(case.settings.get("tolerance", "0")))
    # Reading a program infers its types, and writes them where the pass left them out.
    complete = program_text(infer_module(after), complete=True)
    assert program_text(program_from_text(complete, "again"), complete=True) == complete
    text = program_text(after, complete=False)
    assert text != program_text(before, complete=False), (
        f"{case.path.name} shows nothing: the program stays as it was"
    )
    if update:
        case.write(text)
    else:
        assert text == case.after, f"{case.path.name} differs: look at it, and run pytest --update-goldens"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: "-".join(path.with_suffix("").parts[-3:]))
def test_golden(path, request):
    """The pass makes the text that the file has, and it means the same."""
    check_case(read_case(path), request.config.getoption("--update-goldens"))


@pytest.mark.parametrize(
    ("level", "name"), [(level, name) for level, names in PASSES.items() for name in names.split()]
)
def test_every_pass_has_cases(level, name):
    """Each folder has cases of its pass, two where the pass has more than one way to go."""
    cases = [read_case(path) for path in (FOLDER / level / name).glob("*.txt")]
    assert len(cases) >= (2 if name in TWICE else 1)
    for case in cases:
        made = parse_passes(case.settings["passes"])
        assert any(type(each).__name__ == name for each in made), f"{case.path} does not run {name}"


@dataclass(frozen=True)
class Wrong(ModulePass):
    """Swaps the operands of subtractions."""

    name = "test.golden.Wrong"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        main = mod["main"]
        swapped = main.body.replace(args=tuple(reversed(main.body.args)))
        return mod.with_functions({mod.get_global_var("main"): main.replace(body=swapped)})


@pytest.fixture
def case_file(tmp_path):
    """The path of a case that an update can change."""
    path = tmp_path / "case.txt"
    path.write_text(
        "A subtraction of what is transposed twice.\n\npasses: SimplifyExpr\n" + "-" * 40 + " before\n"
        "def @main(%x: Tensor[(3, 3), float32], %y: Tensor[(3, 3), float32]) {\n"
        "  subtract(transpose(transpose(%x)), %y)\n}\n"
    )
    return path


def test_differences_fail_and_can_be_written(case_file):
    """A text that differs fails the test; an update makes it hold, and leaves the rest of the file alone."""
    head = case_file.read_text()
    with pytest.raises(AssertionError, match="case.txt differs"):
        check_case(read_case(case_file), update=False)
    check_case(read_case(case_file), update=True)
    check_case(read_case(case_file), update=False)
    assert case_file.read_text().startswith(head) and "subtract(%x, %y) /* ty=" in case_file.read_text()


def test_a_wrong_rewrite_cannot_be_blessed(case_file):
    """A pass that changes what is computed fails, and an update does not write its text."""
    Pass.registry[Wrong.name] = Wrong
    case_file.write_text(case_file.read_text().replace("SimplifyExpr", Wrong.name))
    head = case_file.read_text()
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_case(read_case(case_file), update=True)
    assert case_file.read_text() == head


def test_a_case_that_shows_nothing_fails(case_file):
    """A program that the passes leave as it is says nothing about them."""
    case_file.write_text(case_file.read_text().replace("SimplifyExpr", "InferType"))
    with pytest.raises(AssertionError, match="shows nothing"):
        check_case(read_case(case_file), update=True)


def test_what_a_file_must_have(tmp_path):
    """A file without passes, programs or a description says so."""
    path = tmp_path / "case.txt"
    for text, message in (
        ("hello\n", "has no line '-+ before'"),
        (f"hello\n{'-' * 40} before\n", "has no line 'passes"),
        (f"passes: FuseOps\n{'-' * 40} before\n", "does not begin with a sentence"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_case(path)
