"""Run PyTorch's own samples of its operators through the importer, and list what differs.

PyTorch keeps a database of its operators with sample inputs (OpInfo), which its own tests use. Every sample is
exported, imported, run by the reference interpreter (or compiled, with ``--compile``), and compared with eager PyTorch:

    python bench/torch_operators.py                       # all operators, float32
    python bench/torch_operators.py --names add,index_put --samples 50 --dtypes float32,int64,bool
    python bench/torch_operators.py --trace               # after the decompositions that compiler backends see

Results are appended to bench/results/torch_operators.jsonl, so that a run can be broken off and continued: what is in
the file is not run again, unless it is named. Writes bench/results/torch_operators.md.
"""

from __future__ import annotations

import argparse
import collections
import json
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from harness import write_table  # noqa: E402
from torch_programs import database  # noqa: E402

import tilewright as tvm  # noqa: E402
from tilewright import relay  # noqa: E402
from tilewright.relay.frontend import from_exported_program, from_fx  # noqa: E402
from tilewright.runtime.ndarray import numpy_dtype  # noqa: E402
from tilewright.support.dtype import DataType  # noqa: E402
from tilewright.support.errors import ModelError  # noqa: E402

warnings.filterwarnings("ignore")
NOT_COMPARED = ("empty", "new_empty", "rand", "normal", "bernoulli", "multinomial", "uniform", "exponential",
                "cauchy", "geometric", "log_normal", "dropout", "rrelu", "randperm")  # fmt: skip
"""Operators whose results are not determined, or drawn at random."""
KINDS = ("passed", "failed", "skipped")
FORMS = ("exported", "traced after PyTorch's decompositions")
WAYS = ("interpreted", "compiled")


class Sample(torch.nn.Module):
    """One call of an operator; its tensors are inputs, everything else is part of the program."""

    def __init__(self, operator: Any, leaves: list[Any], structure: Any) -> None:
        super().__init__()
        self.operator = operator
        self.leaves = leaves
        self.structure = structure

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The operator's result."""
        given = iter(tensors)
        leaves = [next(given) if leaf is None else leaf[0] for leaf in self.leaves]
        data, args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.structure)
        return self.operator(data, *args, **kwargs)


def sample_of(operator: Any, sample: Any) -> tuple[Sample, list[torch.Tensor]]:
    """A module and its inputs."""
    leaves, structure = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]
    kept = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]
    return Sample(operator, kept, structure), tensors


def imported(module: Sample, tensors: list[torch.Tensor], trace: bool) -> Any:
    """The module and parameters of a sample."""
    if not trace:
        return from_exported_program(torch.export.export(module, tuple(tensors)))
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        graph = make_fx(module, tracing_mode="fake")(*tensors)
    return from_fx(graph)


def flat(value: Any) -> list[Any]:
    """The tensors of a result."""
    return [one for one in torch.utils._pytree.tree_leaves(value) if one is not None]


def numpy_of(tensor: torch.Tensor) -> np.ndarray:
    """The elements; those of bfloat16 in the type that NumPy has for them."""
    if tensor.dtype != torch.bfloat16:
        return tensor.detach().numpy()
    return tensor.detach().view(torch.uint16).numpy().view(numpy_dtype(DataType("bfloat16")))


def ran(module: Any, params: Any, tensors: list[torch.Tensor], compiled: bool) -> list[np.ndarray]:
    """The results as arrays."""
    arrays = [tvm.nd.array(numpy_of(tensor)) for tensor in tensors]
    kind = "vm" if compiled else "debug"
    function = relay.create_executor(kind, mod=module, device=tvm.cpu(), target="llvm").evaluate()
    result = function(*arrays, **params)
    return [one.numpy() for one in (result if not hasattr(result, "numpy") else [result])]


def difference(found: list[np.ndarray], wanted: list[Any], is_random: bool) -> str:
    """What differs; empty if nothing does."""
    if len(found) < len(wanted):
        return f"{len(found)} results for {len(wanted)}"
    # New values of inputs that an operator writes to follow the results.
    for one, other in zip(found, wanted, strict=False):
        array = numpy_of(other) if isinstance(other, torch.Tensor) else np.asarray(other)
        if one.shape != array.shape:
            return f"shape {one.shape} for {array.shape}"
        if isinstance(other, torch.Tensor) and one.dtype != array.dtype:
            return f"type {one.dtype} for {array.dtype}"
        if is_random:
            continue
        if not np.allclose(one, array, rtol=1e-4, atol=1e-5, equal_nan=True):
            apart = np.abs(one.astype("float64") - array.astype("float64"))
            return f"values differ by {np.nanmax(apart):.3g}"
    return ""


def complaint(operator: Any, sample: Any, options: Any) -> str:
    """What goes wrong with one sample, or an empty text; "skip: ..." where PyTorch cannot export it."""
    module, tensors = sample_of(operator.op, sample)
    if any(tensor.layout != torch.strided for tensor in tensors):
        return "skip: sparse"
    try:
        wanted = flat(module(*tensors))
    except Exception as error:  # noqa: BLE001 - a sample that PyTorch itself refuses
        return f"skip: eager {error}"
    if any(
        isinstance(one, torch.Tensor) and (one.is_complex() or one.layout != torch.strided) for one in wanted
    ):
        return "skip: complex or sparse result"
    if not wanted or any(not isinstance(one, (torch.Tensor, int, float, bool)) for one in wanted):
        return "skip: not tensors"
    try:
        program = imported(module, tensors, options.trace)
    except ModelError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - what PyTorch cannot export
        from_here = "tilewright" in "".join(str(frame) for frame in _frames(error))
        return f"{type(error).__name__}: {error}" if from_here else f"skip: export {error}"
    try:
        found = ran(*program, tensors, options.compile)
    except Exception as error:  # noqa: BLE001 - anything that the interpreter raises is a finding
        return f"run {type(error).__name__}: {error}"
    is_random = any(name in operator.name for name in NOT_COMPARED)
    return difference(found, wanted, is_random)


def _frames(error: BaseException) -> list[str]:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return frames[-1:]


def records(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """What earlier runs found, by form, way to run, operator and element type; the latest line of each counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines if line.strip()]
    return {tuple(line[part] for part in ("form", "how", "operator", "dtype")): line for line in found}


def examined(operator: Any, dtype: torch.dtype, options: Any) -> dict[str, Any] | None:
    """How many samples of an operator pass, fail and are skipped, and why; None where there are no samples."""
    torch.manual_seed(0)
    try:
        samples = list(operator.sample_inputs("cpu", dtype, requires_grad=False))
    except Exception:  # noqa: BLE001 - samples that need packages which are not there
        return None
    step = max(len(samples) // options.samples, 1)
    found: dict[str, Any] = {**dict.fromkeys(KINDS, 0), "failures": []}
    for place, sample in list(enumerate(samples))[::step][: options.samples]:
        problem = complaint(operator, sample, options)
        found["skipped" if problem.startswith("skip") else "failed" if problem else "passed"] += 1
        if problem and not problem.startswith("skip"):
            found["failures"].append(f"#{place}: {' '.join(problem.split())[:300]}")
    return found


def main() -> int:
    """Run the samples and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", default="", help="operators, separated by commas")
    parser.add_argument("--samples", type=int, default=4, help="samples of each operator and type")
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--again", action="store_true", help="run what failed once more")
    parser.add_argument("--records", type=Path, default=HERE / "results" / "torch_operators.jsonl")
    parser.add_argument("--report", type=Path, default=HERE / "results" / "torch_operators.md")
    options = parser.parse_args()
    wanted = {name for name in options.names.split(",") if name}
    form, how = FORMS[options.trace], WAYS[options.compile]
    before = records(options.records)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for operator in database():
            label = operator.name + (f".{operator.variant_test_name}" if operator.variant_test_name else "")
            if wanted and operator.name not in wanted:
                continue
            for dtype in options.dtypes.split(","):
                known = before.get((form, how, label, dtype))
                if getattr(torch, dtype) not in operator.dtypes:
                    continue
                if known is not None and not wanted and not (options.again and known["failed"]):
                    continue
                started = time.perf_counter()
                found = examined(operator, getattr(torch, dtype), options)
                if found is None:
                    continue
                for failure in found["failures"]:
                    print(f"{label} {dtype} {failure}", flush=True)
                line = {"form": form, "how": how, "operator": label, "dtype": dtype, **found}
                line["seconds"] = round(time.perf_counter() - started, 1)
                with options.records.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    finally:
        found_by_now = records(options.records)
        options.records.write_text("".join(json.dumps(line) + "\n" for line in found_by_now.values()))
        _report(options, list(found_by_now.values()))
    return 0


def _report(options: Any, lines: list[dict[str, Any]]) -> None:
    """The table of what is known by now."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = collections.defaultdict(list)
    for line in lines:
        groups[line["form"], line["how"], line["dtype"]].append(line)
    rows = [
        [*group, str(len(members)), *(str(sum(line[kind] for line in members)) for kind in KINDS)]
        for group, members in groups.items()
    ]
    failures = [
        f"- {line['operator']} {line['dtype']} {failure}" for line in lines for failure in line["failures"]
    ]
    notes = [
        f"Up to {options.samples} samples of each operator of PyTorch's database ({len(database())} entries in all). "
        "Skipped: what eager PyTorch refuses or does not export, complex and sparse tensors, results that are not "
        "tensors.",
        "",
        "## Failures",
        "",
        *(failures or ["None."]),
    ]
    title = "PyTorch's samples of its operators through the importer"
    header = ["form", "how", "element type", "operators", *KINDS]
    write_table(options.report, title, header, rows, "\n".join(notes))


if __name__ == "__main__":
    sys.exit(main())
