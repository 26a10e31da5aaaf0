"""Random programs on every executor: the interpreter, the graph executor and the virtual machine must agree.

    python tests/relay/fuzz.py --minutes 60 --seed 0

Each program runs in a process of its own, so that a crash is a finding like any other. Every new failure is printed
with the seed and the text of the program; failures with the same message are counted.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("TILEWRIGHT_CHECK", "1")
for _folder in (ROOT, ROOT / "src"):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))

import numpy as np  # noqa: E402
from tests.relay.random_program import Program, random_program  # noqa: E402

import tilewright as tvm  # noqa: E402
from tilewright import relay  # noqa: E402
from tilewright.ir.op import Op  # noqa: E402
from tilewright.relay.expr_functor import post_order_visit  # noqa: E402
from tilewright.runtime.container import ADT  # noqa: E402
from tilewright.support.errors import TilewrightError  # noqa: E402

SECONDS_A_PROGRAM = 120
"""Of the processor: on a machine that is busy with other things, programs take longer than that."""
PATIENCE = 5
"""A program that waits for something that never comes ends after so many times the seconds by the clock."""
MACHINE_ONLY = {"if", "loop", "reference", "data", "unknown"}
"""What the graph executor cannot run."""
LEFT_OUT = {"random.threefry_generate", "random.threefry_split", "random.uniform", "debug", "check_indices"}
"""Operators whose cases are not recipes: bits that noise must not touch, a debugger, and what is made to fail."""


def _case_recipe(case: Any) -> Callable[[Any], Any]:
    """A case of the tables as a recipe: its inputs are values of the program where some fit."""

    def make(g: Any) -> Any:
        given = []
        for one in case.inputs:
            array = one.make(g.random)
            fitting = [
                value
                for value in g.visible()
                if one.values is None
                and value.shape == array.shape
                and value.dtype == one.dtype
                and value.within(one.low, one.high if value.dtype.startswith("float") else one.high - 1)
            ]
            if fitting and g.chance(0.7):
                given.append(g.use(g.choice(fitting)).expr)
            else:
                given.append(g.fresh(array.shape, one.dtype, values=array).expr)
        try:
            return case.build(*given)
        except AttributeError as error:
            if "type_annotation" in str(error):
                # The case looks at the types of its variables, and was given other expressions.
                return None
            raise

    return make


@cache
def case_recipes() -> dict[str, list[Callable[[Any], Any]]]:
    """A recipe for each case of each table of operators, by the operator that it calls last."""
    return _case_tables()[0]


@cache
def case_operators() -> frozenset[str]:
    """The operators that those recipes call."""
    return _case_tables()[1]


@cache
def open_operators() -> frozenset[str]:
    """The operators with a case that runs with every dimension unknown."""
    return _case_tables()[2]


@cache
def _case_tables() -> tuple[dict[str, list[Callable[[Any], Any]]], frozenset[str], frozenset[str]]:
    made: dict[str, list[Callable[[Any], Any]]] = {}
    called: set[str] = set()
    opening: set[str] = set()
    for path in sorted((ROOT / "tests" / "relay" / "op").glob("cases_*.py")):
        for case in importlib.import_module(f"tests.relay.op.{path.stem}").CASES:
            arrays = [one.make(np.random.default_rng(0)) for one in case.inputs]
            names: list[str] = []

            def look(expr: Any, names: list[str] = names) -> None:
                if isinstance(expr, Op):
                    names.append(expr.name)

            built = case.build(*[relay.var("x", shape=one.shape, dtype=str(one.dtype)) for one in arrays])
            post_order_visit(built.astuple() if isinstance(built, relay.TupleWrapper) else built, look)
            if names and not LEFT_OUT & set(names):
                made.setdefault(names[-1], []).append(_case_recipe(case))
                called.update(names)
            if case.dynamic:
                opening.update(names)
    return made, frozenset(called), frozenset(opening)


@dataclass(frozen=True)
class Failure:
    """What went wrong with a program on an executor."""

    seed: int
    where: str
    message: str

    @property
    def kind(self) -> str:
        """What failures of one cause have in common: the first line without numbers and names."""
        first = self.message.strip().splitlines()[0] if self.message.strip() else ""
        short = re.sub(r"0x[0-9a-f]+|[0-9a-f]{8,}|-?\d+(\.\d+)?(e-?\d+)?", "#", first)
        return f"{self.where.split(' ')[0]} {re.sub(r'fused_[a-z_#]+', 'fused', short)[:160]}"


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple, ADT)):
        for part in value:
            yield from _flat(part)
    else:
        yield value.numpy()


def difference(program: Program, value: Any) -> str | None:
    """How a result differs from what is expected; None where it does not."""
    found = list(_flat(value))
    if len(found) != len(program.expected):
        return f"{len(found)} results, not {len(program.expected)}"
    for number, (got, right, allowed) in enumerate(
        zip(found, program.expected, program.tolerances, strict=True)
    ):
        if got.shape != right.shape or got.dtype != right.dtype:
            return f"wrong type: result {number} is {got.dtype}{got.shape}, not {right.dtype}{right.shape}"
        if got.dtype.kind == "f":
            off = np.abs(got.astype("float64") - right.astype("float64"))
            if not np.isfinite(off).all() or (off > allowed).any():
                return f"wrong value: result {number} is off by {off.max(initial=0):.3g}, {allowed:.3g} is allowed"
        elif not (got == right).all():
            count = int((got != right).sum())
            return f"wrong value: result {number} has {count} of {got.size} elements wrong"
    return None


def opened(program: Program) -> tvm.IRModule | None:
    """The program with some dimensions of its arguments left open; None where its types do not allow that."""
    if program.features - {"unknown"} or program.operators - open_operators():
        # Functions and loops have the types of their parameters written down.
        return None
    random = np.random.default_rng(program.seed)
    main = program.module["main"]
    if _has_groups(main):
        return None
    given = {}
    for parameter in main.params:
        shape = [
            relay.Any() if random.random() < 0.5 else int(extent) for extent in parameter.checked_type.shape
        ]
        kind = relay.TensorType(shape, parameter.checked_type.dtype)
        given[parameter] = relay.Var(parameter.name_hint, kind)
    body = relay.bind(main.body, given)
    try:
        return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(list(given.values()), body)))
    except TilewrightError:
        return None


def _has_groups(function: Any) -> bool:
    """True if a convolution has groups: only extents tell whether the letter O of a depthwise weight counts channels or
    kernels of each."""
    found: list[Any] = []
    post_order_visit(
        function, lambda expr: found.append(expr) if getattr(_attrs(expr), "groups", 1) > 1 else None
    )
    return bool(found)


def _attrs(expr: Any) -> Any:
    return expr.attrs if isinstance(expr, relay.Call) else None


def plans(program: Program, every_level: bool = False) -> list[tuple[str, int]]:
    """The executors and optimisation levels for a program: the interpreter, all passes, and one level below. "open" is
    the virtual machine with some dimensions unknown."""
    lower = program.seed % 3
    levels = [0, 1, 2, 3] if every_level else [3, lower]
    kinds = ["vm"] if program.features & MACHINE_ONLY else ["graph", "vm"]
    kinds = [kind for kind in kinds if kind != "vm" or hasattr(relay.build_module, "VMExecutor")]
    found = [("debug", 0), *((kind, level) for kind in kinds for level in levels)]
    return [*found, ("open", 3 if program.seed % 2 else 0)] if "vm" in kinds else found


def check(program: Program, every_level: bool = False) -> list[Failure]:
    """The failures of one program."""
    failures = []
    for kind, level in plans(program, every_level):
        where = f"{kind} at level {level}"
        module = opened(program) if kind == "open" else program.module
        if module is None:
            continue
        try:
            with tvm.transform.PassContext(opt_level=level):
                executor = relay.create_executor("vm" if kind == "open" else kind, module)
                value = executor.evaluate()(*program.arguments)
        except Exception as error:  # noqa: BLE001 - whatever comes is a finding
            failures.append(Failure(program.seed, where, f"{type(error).__name__}: {error}"))
            continue
        text = difference(program, value)
        if text is not None:
            failures.append(Failure(program.seed, where, text))
    return failures


def checked_seed(seed: int, size: int, every_level: bool = False) -> list[Failure]:
    """The failures of the program of a seed, the generator's included."""
    try:
        program = random_program(seed, size, recipes=case_recipes())
    except Exception as error:  # noqa: BLE001 - whatever comes is a finding
        return [Failure(seed, "generator", f"{type(error).__name__}: {error}")]
    return check(program, every_level)


def in_child(work: Callable[[], list[Failure]], seed: int, seconds: float) -> list[Failure]:
    """Run in a process of its own; a crash or a program that does not end is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "failures.json"
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.setitimer(signal.ITIMER_PROF, seconds)
                signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
                os.environ["TILEWRIGHT_COMPILE_PROCESSES"] = "1"
                place.write_text(json.dumps([vars(failure) for failure in work()]))
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            what = (
                "does not end" if number in (signal.SIGALRM, signal.SIGPROF) else f"killed by signal {number}"
            )
            return [Failure(seed, "process", what)]
        if not place.exists():
            return [Failure(seed, "process", f"ended with status {status}")]
        return [Failure(**one) for one in json.loads(place.read_text())]


def fuzz(
    seeds: Sequence[int] | Iterator[int],
    seconds: float,
    size: int = 12,
    every_level: bool = False,
    report: Callable[[Failure, int], None] = lambda failure, count: None,
) -> tuple[int, dict[str, list[Failure]]]:
    """Check seeds until the time is over: how many, and the failures by kind."""
    case_recipes()
    end = time.monotonic() + seconds
    found: dict[str, list[Failure]] = {}
    count = 0
    for seed in seeds:
        if time.monotonic() > end:
            break
        count += 1
        for failure in in_child(
            lambda seed=seed: checked_seed(seed, size, every_level), seed, SECONDS_A_PROGRAM
        ):
            known = found.setdefault(failure.kind, [])
            known.append(failure)
            report(failure, len(known))
    return count, found


def say(text: str) -> None:
    """A line for whoever runs this."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _print_failure(failure: Failure, count: int, size: int) -> None:
    if count > 1:
        say(f"again ({count}): seed {failure.seed}, {failure.kind}")
        return
    say(f"\n=== seed {failure.seed}, {failure.where}\n{failure.message[:3000]}")
    if failure.where != "generator":
        program = random_program(failure.seed, size, recipes=case_recipes())
        say(program.module["main"].astext(show_meta_data=False))


def _count_from(seed: int) -> Iterator[int]:
    while True:
        yield seed
        seed += 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare executors on random programs.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", action="store_true", help="this seed alone, in this process")
    parser.add_argument("--size", type=int, default=12, help="calls in a program, at most")
    parser.add_argument("--every-level", action="store_true", help="all four optimisation levels")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as cache_folder:
        os.environ["TILEWRIGHT_CACHE_DIR"] = cache_folder
        if options.only:
            failures = checked_seed(options.seed, options.size, options.every_level)
            for failure in failures:
                _print_failure(failure, 1, options.size)
            return 1 if failures else 0
        count, found = fuzz(
            _count_from(options.seed),
            60 * options.minutes,
            options.size,
            options.every_level,
            lambda failure, seen: _print_failure(failure, seen, options.size),
        )
    say(f"\n{count} programs, {len(found)} kinds of failure")
    for kind, failures in sorted(found.items(), key=lambda one: -len(one[1])):
        seeds = ", ".join(str(failure.seed) for failure in failures[:8])
        say(f"{len(failures):5}  {kind}  (seeds {seeds})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
