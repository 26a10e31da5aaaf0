"""PyTorch's own test programs through ``torch.compile(backend="tilewright")``, compared with eager.

Run it:  python bench/torch_programs.py [--databases operators,modules,export] [--only add,nn.functional] [--samples 1]
                                        [--limit 60] [--dtype float32] [--target "llvm -opt-level=0"] [--again]

The programs are those that PyTorch tests its exporters and backends with: the samples of ``torch.testing._internal``'s
operators and modules, and the examples of ``torch.export``. Every program has a process of its own. It counts as
compiled if nothing was left to PyTorch; "no graph" means that TorchDynamo captures none, so that no backend sees it.
Results are appended to a file, and what is there is not run again; the summary goes to
bench/results/torch_programs.md.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from harness import write_table  # noqa: E402
from limited import run  # noqa: E402

UNFIT = (
    "rand",
    "empty",
    "normal",
    "bernoulli",
    "multinomial",
    "dropout",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
)
"""Words in the names of operators whose values differ from run to run."""

FINE = ("compiled", "no samples", "no graph")
"""Results that are no fault of the backend."""


def database() -> list[Any]:
    """PyTorch's operator database. It imports a package of test helpers, of which it needs a class."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:
            helper = types.ModuleType("expecttest")
            helper.TestCase = unittest.TestCase  # type: ignore[attr-defined]
            sys.modules["expecttest"] = helper
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function, and what it is called with."""

Programs = Iterator[tuple[str, Callable[[], Iterator[Call]]]]


def is_fit(name: str) -> bool:
    """True if the values of a program do not depend on chance."""
    return not any(word in name.rpartition(".")[2].lower() for word in UNFIT)


def operators(dtype: torch.dtype) -> Programs:
    """The operators of the database that take an element type."""
    for info in database():
        name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
        if dtype in info.dtypes and is_fit(info.name):
            yield name, partial(_operator_calls, info, dtype)


def _operator_calls(info: Any, dtype: torch.dtype) -> Iterator[Call]:
    for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
        yield info.op, (sample.input, *sample.args), sample.kwargs


def modules(dtype: torch.dtype) -> Programs:
    """The layers of ``torch.nn`` in inference."""
    database()
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if dtype in info.dtypes and is_fit(info.name):
            yield info.name, partial(_module_calls, info, dtype)


def _module_calls(info: Any, dtype: torch.dtype) -> Iterator[Call]:
    samples = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=False)
    for sample in samples:
        made = sample.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).to(dtype).eval()
        if sample.forward_input is not None:
            yield module, sample.forward_input.args, sample.forward_input.kwargs


def export_examples(dtype: torch.dtype) -> Programs:
    """The examples of what ``torch.export`` supports: control flow, data structures, views, mutation."""
    from torch._export.db.case import SupportLevel
    from torch._export.db.examples import filter_examples_by_support_level

    for name, case in filter_examples_by_support_level(SupportLevel.SUPPORTED).items():
        yield name, partial(_example_calls, case)


def _example_calls(case: Any) -> Iterator[Call]:
    yield case.model, case.example_args, case.example_kwargs


DATABASES: dict[str, Callable[[torch.dtype], Programs]] = {
    "operators": operators,
    "modules": modules,
    "export": export_examples,
}


def program(calls: Callable[[], Iterator[Call]], samples: int, target: str) -> dict[str, Any]:
    """The samples of a program, each compiled for itself and compared with eager."""
    from tilewright.driver.torch_backend import tilewright

    left: list[str] = []
    count = 0
    for function, args, kwargs in calls():
        if count == samples:
            break
        count += 1
        # Programs may write to what they are given.
        eager, given, named = copy.deepcopy((function, args, kwargs))
        with torch.no_grad():
            expected = eager(*given, **named)
        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as caught, torch.no_grad():
            warnings.simplefilter("always")
            try:
                called = lambda *args, function=function, **kwargs: function(*args, **kwargs)
                found = torch.compile(called, backend=tilewright, fullgraph=True, options={"target": target})(
                    *args, **kwargs
                )
            except torch._dynamo.exc.Unsupported as error:
                return {"status": "no graph", "note": " ".join(str(error).split())[:200]}
        left += [str(one.message) for one in caught if "leaves to PyTorch" in str(one.message)]
        try:
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True)
        except AssertionError as error:
            return {"status": "differs", "note": " ".join(str(error).split())[:300]}
    if not count:
        return {"status": "no samples", "note": ""}
    return {"status": "left to PyTorch" if left else "compiled", "note": "; ".join(dict.fromkeys(left))[:400]}


def preload() -> None:
    """Load here what every process of a program would load for itself."""
    from tilewright.driver.torch_backend import tilewright  # noqa: F401

    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", default=",".join(DATABASES), help="with commas between them")
    parser.add_argument("--only", help="parts of programs' names, with commas between them")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--target", default="llvm", help="what to compile for")
    parser.add_argument("--again", action="store_true", help="run what was not compiled once more")
    parser.add_argument("--records", type=Path, default=HERE / "results" / "torch_programs.jsonl")
    parser.add_argument("--report", type=Path, default=HERE / "results" / "torch_programs.md")
    options = parser.parse_args()
    preload()
    lines = {}
    if options.records.exists():
        found = [json.loads(line) for line in options.records.read_text().splitlines()]
        lines = {(line["database"], line["program"]): line for line in found}
    try:
        _run(options, lines)
    finally:
        options.records.write_text("".join(json.dumps(line) + "\n" for line in lines.values()))
        _report(options, list(lines.values()))


def _run(options: argparse.Namespace, lines: dict[tuple[str, str], dict[str, str]]) -> None:
    words = options.only.split(",") if options.only else [""]
    for database_name in options.databases.split(","):
        for name, calls in DATABASES[database_name](getattr(torch, options.dtype)):
            known = lines.get((database_name, name))
            if known is not None and (not options.again or known["status"] in FINE):
                continue
            if not any(word in name for word in words):
                continue
            found = run(partial(program, calls, options.samples, options.target), options.limit, int(12e9))
            line = {
                "database": database_name,
                "program": name,
                "status": found["status"],
                "note": found.get("note", ""),
            }
            lines[database_name, name] = line
            with options.records.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"{name}: {line['status']} {line['note'][:100]}", flush=True)


def _report(options: argparse.Namespace, lines: list[dict[str, str]]) -> None:
    counts = Counter((line["status"], line["database"]) for line in lines)
    statuses = [status for status, _ in Counter(line["status"] for line in lines).most_common()]
    rows = [[status, *(str(counts[status, name]) for name in DATABASES)] for status in statuses]
    notes = [f"{len(lines)} programs, {options.samples} sample each, {options.dtype}.", ""]
    notes += [
        f"- {line['program']}: {line['status']}. {' '.join(line['note'].split())[:200]}"
        for line in lines
        if line["status"] not in FINE
    ]
    title = "PyTorch's test programs through torch.compile"
    write_table(options.report, title, ["result", *DATABASES], rows, "\n".join(notes))


if __name__ == "__main__":
    main()
