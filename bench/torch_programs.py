"""PyTorch's own operator programs through ``torch.compile(backend="tilewright")``, compared with eager.

Run it:  python bench/torch_programs.py [--only add,nn.functional] [--samples 1] [--limit 60] [--dtype float32]

The programs are the samples of ``torch.testing._internal``'s operator database, the ones that PyTorch tests its
exporters and backends with. Every operator has a process of its own. A program counts as compiled if nothing was left
to PyTorch; "no graph" means that TorchDynamo captures none, so that no backend sees it. Results are appended to a file,
and what is there is not run again; the summary goes to bench/results/torch_programs.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
import unittest
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from harness import write_table  # noqa: E402
from limited import run  # noqa: E402
from zoo import CACHE  # noqa: E402

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


def is_fit(info: Any, dtype: torch.dtype) -> bool:
    """True if an operator takes the type and its values do not depend on chance."""
    name = info.name.rpartition(".")[2]
    return dtype in info.dtypes and not any(word in name for word in UNFIT)


def program(info: Any, samples: int, dtype: torch.dtype) -> dict[str, Any]:
    """The samples of an operator, each compiled for itself and compared with eager."""
    from tilewright.driver.torch_backend import tilewright

    left: list[str] = []
    count = 0
    for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
        if count == samples:
            break
        count += 1
        function = lambda *args, sample=sample: info.op(args[0], *args[1:], **sample.kwargs)
        given = (sample.input, *sample.args)
        expected = function(*given)
        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as caught, torch.no_grad():
            warnings.simplefilter("always")
            try:
                found = torch.compile(function, backend=tilewright, fullgraph=True)(*given)
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="parts of operators' names, with commas between them")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one operator")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--records", type=Path, default=CACHE / "torch_programs.jsonl")
    parser.add_argument("--report", type=Path, default=HERE / "results" / "torch_programs.md")
    options = parser.parse_args()
    dtype = getattr(torch, options.dtype)
    lines = []
    if options.records.exists():
        lines = [json.loads(line) for line in options.records.read_text().splitlines()]
    known = {line["operator"] for line in lines}
    words = options.only.split(",") if options.only else [""]
    options.records.parent.mkdir(parents=True, exist_ok=True)
    for info in database():
        name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
        if name in known or not is_fit(info, dtype) or not any(word in name for word in words):
            continue
        found = run(partial(program, info, options.samples, dtype), options.limit, int(12e9))
        line = {"operator": name, "status": found["status"], "note": found.get("note", "")}
        lines.append(line)
        with options.records.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{name}: {line['status']} {line['note'][:100]}", flush=True)
    counts = Counter(line["status"] for line in lines)
    rows = [[status, str(count)] for status, count in counts.most_common()]
    failed = [line for line in lines if line["status"] not in ("compiled", "no samples", "no graph")]
    notes = [f"{len(lines)} operators, {options.samples} sample each, {options.dtype}.", ""]
    notes += [
        f"- {line['operator']}: {line['status']}. {' '.join(line['note'].split())[:200]}" for line in failed
    ]
    title = "PyTorch's operator programs through torch.compile"
    write_table(options.report, title, ["result", "operators"], rows, "\n".join(notes))


if __name__ == "__main__":
    main()
