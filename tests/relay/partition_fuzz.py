"""Random programs partitioned by random tables of patterns: they must run as before.

    python tests/relay/partition_fuzz.py --programs 1000 --seed 0

The code generator of the parts is the interpreter. Every program runs partitioned in the interpreter and, where it can,
compiled with its parts in the graph executor. A failure is printed with its seed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("TILEWRIGHT_CHECK", "1")
for _folder in (ROOT, ROOT / "src"):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))

import numpy as np  # noqa: E402
from tests.relay.fuzz import MACHINE_ONLY, difference  # noqa: E402
from tests.relay.random_program import Program, random_program  # noqa: E402

import tilewright as tvm  # noqa: E402
from tilewright import relay  # noqa: E402
from tilewright.ir.op import Op  # noqa: E402
from tilewright.relay import transform  # noqa: E402
from tilewright.relay.backend.byoc.partition import plain_function  # noqa: E402
from tilewright.relay.dataflow_pattern import is_op, wildcard  # noqa: E402
from tilewright.runtime.container import ADT  # noqa: E402

NAME = "fuzzed"
TAKEN: set[str] = set()
"""The operators that the code generator takes by themselves, of the program at hand."""


class Interpreted(tvm.runtime.Module):
    """A part that the interpreter computes."""

    def __init__(self, function: Any) -> None:
        self.symbol = str(function.attrs["global_symbol"])
        super().__init__(NAME, (self.symbol,))
        self.run = relay.create_executor("debug", tvm.IRModule.from_expr(plain_function(function))).evaluate()
        self.kinds = [parameter.checked_type for parameter in function.params]

    def _find(self, name: str) -> Any:
        return tvm.runtime.convert_to_tvm_func(self.call) if name == self.symbol else None

    def call(self, *arguments: Any) -> None:
        """Inputs, then outputs, the tensors of tuples one by one."""
        given = iter(arguments)
        found = self.run(*[nested(kind, given) for kind in self.kinds])
        for output, value in zip(given, flat(found), strict=True):
            output.copyfrom(value.numpy())


def nested(kind: Any, given: Iterator[Any]) -> Any:
    """A value of a type from its tensors."""
    fields = getattr(kind, "fields", None)
    return next(given) if fields is None else tuple(nested(field, given) for field in fields)


def flat(value: Any) -> list[Any]:
    """The tensors of a value."""
    return [one for part in value for one in flat(part)] if isinstance(value, (list, tuple, ADT)) else [value]


def prepare() -> None:
    """Register the code generator, and a mark on every operator."""
    tvm.register_func(f"relay.ext.{NAME}", Interpreted, override=True)
    for name in Op.list_op_names():
        if not name.startswith("tir.") and not Op.get(name).has_attr(f"target.{NAME}"):
            tvm.ir.register_op_attr(name, f"target.{NAME}", lambda call: call.op.name in TAKEN)


def random_table(program: Program, random: np.random.Generator) -> list[tuple[str, Any]]:
    """Patterns of calls that the program has, with some of their arguments."""
    calls: list[Any] = []
    relay.analysis.post_order_visit(
        program.module["main"],
        lambda expr: calls.append(expr) if isinstance(expr, relay.Call) and isinstance(expr.op, Op) else None,
    )

    def pattern(call: Any, depth: int) -> Any:
        parts = [
            pattern(one, depth - 1)
            if depth and isinstance(one, relay.Call) and isinstance(one.op, Op) and random.random() < 0.7
            else wildcard()
            for one in call.args
        ]
        return is_op(call.op.name)(*parts)

    table = []
    for number in range(int(random.integers(0, 4)) if calls else 0):
        chosen = calls[int(random.integers(len(calls)))]
        table.append((f"{NAME}.pattern_{number}", pattern(chosen, int(random.integers(0, 3)))))
    return table


def partitioned(program: Program) -> tvm.IRModule:
    """The program with random parts taken out."""
    random = np.random.default_rng(program.seed)
    TAKEN.clear()
    TAKEN.update(name for name in sorted(program.operators) if random.random() < 0.4)
    passes = [transform.InferType(), transform.MergeComposite(random_table(program, random))]
    passes += [transform.AnnotateTarget(NAME, bool(random.integers(2)))]
    if random.random() < 0.7:
        passes.append(transform.MergeCompilerRegions())
    passes.append(transform.PartitionGraph())
    return tvm.transform.Sequential(passes)(program.module)


def check(seed: int, compiled: bool) -> tuple[int, list[str]]:
    """How many parts there were, and what went wrong."""
    program = random_program(seed)
    try:
        module = partitioned(program)
        parts = sum(bool(one.attrs.get("Compiler")) for one in module.functions.values())
        kinds = ["debug"]
        if compiled and parts and not program.features & MACHINE_ONLY:
            kinds.append("graph")
        texts = []
        for kind in kinds:
            value = relay.create_executor(kind, module).evaluate()(*program.arguments)
            text = difference(program, value)
            if text is not None:
                texts.append(f"seed {seed}, {kind}: {text}")
        return parts, texts
    except Exception as error:  # noqa: BLE001 - whatever comes is a finding
        return 0, [f"seed {seed}: {type(error).__name__}: {error}"]


def main() -> int:
    """Run the programs, and print what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled-every", type=int, default=1, help="compile every Nth program")
    arguments = parser.parse_args()
    prepare()
    failures, parts = [], 0
    for seed in range(arguments.seed, arguments.seed + arguments.programs):
        found, texts = check(seed, seed % arguments.compiled_every == 0)
        parts += found
        failures += texts
        for text in texts:
            print(text[:600], flush=True)
        if (seed + 1) % 100 == 0:
            print(
                f"{seed + 1 - arguments.seed} programs, {parts} parts, {len(failures)} failures", flush=True
            )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
