"""The generator of random programs, and the fuzzer for half a minute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.relay import fuzz
from tests.relay.op.test_operators import WITHOUT_CASES
from tests.relay.random_program import RECIPES, Generator, Program, random_program
from tests.relay.random_program.evaluation import Evaluation

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import vision


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled, and shared between the executors of one test."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def test_a_seed_gives_one_program() -> None:
    """The same text and the same arguments every time; another seed gives another program."""
    one, again, other = random_program(3), random_program(3), random_program(4)
    assert one.module["main"].astext() == again.module["main"].astext()
    assert all((a == b).all() for a, b in zip(one.arguments, again.arguments, strict=True))
    assert one.module["main"].astext() != other.module["main"].astext()


@pytest.mark.parametrize("seed", range(40))
def test_programs_are_valid(seed: int) -> None:
    """Inference accepts them, and the interpreter computes what the generator says, element for element."""
    program = random_program(seed, structure=seed % 2 == 0)
    value = relay.create_executor("debug", program.module).evaluate()(*program.arguments)
    assert fuzz.difference(program, value) is None


def test_every_operator_has_a_recipe() -> None:
    """From the generator, or from a case of its table. What the documents' own blocks define is not the package's."""
    known = set(RECIPES) | fuzz.case_operators() | fuzz.LEFT_OUT | set(WITHOUT_CASES)
    defined = {
        name
        for name in Op.list_op_names()
        if not name.startswith(("tir.", "docs.", "qnn.")) and Op.get(name).has_attr("FReference")
    }
    assert defined - known == set()


def test_what_hangs_on_rounding_alone_is_left_out() -> None:
    """The left edge of a box around the middle of a picture's first cell is zero in one order of steps only."""
    generator = Generator(0)
    data = generator.fresh((1, 2, 2, 3), "float32")
    boxes = vision.multibox_prior(data.expr, sizes=[0.9], ratios=[1.0, 3.0], steps=(0.3, 0.2), clip=True)
    assert len(generator.accept(boxes)) == 1
    assert generator.accept(relay.sign(boxes)) == []


@pytest.mark.parametrize(
    "name", ["take", "gather", "gather_nd", "scatter_add", "scatter_nd", "adv_index", "topk", "split"]
)
def test_nothing_is_picked_from_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that comes upon a tensor without elements makes no call."""
    generator = Generator(0)
    empty = generator.fresh((0, 3), "float32")
    monkeypatch.setattr(generator, "tensor", lambda *arguments, **options: empty)
    monkeypatch.setattr(generator, "chance", lambda share: False)
    assert generator.step({name: RECIPES[name][:1]}) == []


def test_programs_have_all_of_the_language() -> None:
    """Branches, loops, references, lists and functions come up."""
    found = frozenset().union(*(random_program(seed, structure=True).features for seed in range(150)))
    assert {"if", "loop", "reference", "data", "closure"} <= found


def test_what_noise_decides_is_left_out() -> None:
    """A value that rounding could change altogether has no tolerance; one that it moves a little has a small one."""
    x = relay.var("x", shape=(3,))
    evaluation = Evaluation(tvm.IRModule(), 0)
    evaluation.define(x, np.array([0.3, 1.0, 2.0], "float32"))

    def spread(expr: relay.Expr) -> float | None:
        return evaluation.spread(list(evaluation.run(expr).values()))

    same = relay.exp(x)
    assert spread(same - same) == 0.0
    assert spread(relay.floor(relay.exp(relay.log(x)))) is None
    assert spread(relay.exp(x) > relay.copy(relay.exp(x))) is None
    assert spread(relay.exp(relay.const(200.0) * x)) is None
    moved = spread(relay.exp(x))
    assert moved is not None and 0 < moved < 1e-3


def program(function: relay.Function, *arguments: np.ndarray) -> Program:
    """A program that was found, or written by hand."""
    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    value = relay.create_executor("debug", module).evaluate()(*arguments)
    expected = list(fuzz._flat(value))
    return Program(0, module, list(arguments), expected, [1e-5] * len(expected), frozenset(), frozenset())


def test_differences_are_found(own_cache: None) -> None:
    """A wrong value, a wrong type and a missing result are told apart; the right one is not reported."""
    x = relay.var("x", shape=(3,))
    given = np.array([1, 2, 3], "float32")
    made = program(relay.Function([x], relay.Tuple([relay.exp(x), relay.cast(x, "int32")])), given)
    assert fuzz.check(made) == []
    wrong = [made.expected[0] + 1, made.expected[1]]
    failures = fuzz.check(Program(**{**vars(made), "expected": wrong}))
    assert {failure.where.split()[0] for failure in failures} >= {"debug", "graph"}
    assert all("result 0 is off by 1" in failure.message for failure in failures)
    shorter = Program(**{**vars(made), "expected": wrong[:1]})
    assert "2 results, not 1" in fuzz.check(shorter)[0].message
    other = Program(**{**vars(made), "expected": [made.expected[0], made.expected[1].astype("int64")]})
    assert "wrong type: result 1 is int32(3,), not int64(3,)" in fuzz.check(other)[0].message


def test_a_crash_is_a_finding() -> None:
    """A process that is killed, and one that works or waits without end, are failures of their seed."""

    def crash() -> list[fuzz.Failure]:
        fuzz.os.kill(fuzz.os.getpid(), fuzz.signal.SIGKILL)
        return []

    def work() -> list[fuzz.Failure]:
        while True:
            pass

    def wait() -> list[fuzz.Failure]:
        fuzz.time.sleep(30)
        return []

    assert fuzz.in_child(crash, 5, 10) == [fuzz.Failure(5, "process", "killed by signal 9")]
    assert fuzz.in_child(work, 6, 0.2) == [fuzz.Failure(6, "process", "does not end")]
    assert fuzz.in_child(wait, 7, 0.2) == [fuzz.Failure(7, "process", "does not end")]


def test_one_cause_is_one_kind() -> None:
    """Numbers and names of kernels do not make failures different."""
    one = fuzz.Failure(1, "graph at level 3", "wrong value: result 0 is off by 0.25, 1e-05 is allowed")
    other = fuzz.Failure(2, "graph at level 0", "wrong value: result 3 is off by 7.5, 2e-05 is allowed")
    assert one.kind == other.kind
    assert one.kind != fuzz.Failure(2, "vm at level 0", other.message).kind


def test_executors_agree_on_random_programs(own_cache: None) -> None:
    """Half a minute of the fuzzer finds nothing."""
    count, found = fuzz.fuzz(range(100_000, 200_000), seconds=30)
    assert count > 0
    assert found == {}, "\n".join(
        f"seed {failures[0].seed}, {failures[0].where}: {failures[0].message}" for failures in found.values()
    )
