"""Run PyTorch's own samples of its operators through the importer, and list what differs.

PyTorch keeps a database of its operators with sample inputs (OpInfo), which its own tests use. Every sample is
exported, imported, run by the reference interpreter (or compiled, with ``--compile``), and compared with eager PyTorch:

    python bench/torch_operators.py                       # all operators, float32
    python bench/torch_operators.py --names add,index_put --samples 50 --dtypes float32,int64,bool
    python bench/torch_operators.py --trace               # after the decompositions that compiler backends see

A run of all operators writes bench/results/torch_operators.md.
"""

from __future__ import annotations

import argparse
import collections
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


def main() -> int:
    """Run the samples and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", default="", help="operators, separated by commas")
    parser.add_argument("--samples", type=int, default=4, help="samples of each operator and type")
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--part", default="0/1", help="which part of how many, to share the work")
    parser.add_argument("--report", type=Path, default=HERE / "results" / "torch_operators.md")
    options = parser.parse_args()
    wanted = {name for name in options.names.split(",") if name}
    number, parts = (int(one) for one in options.part.split("/"))
    chosen = [one for one in database() if not wanted or one.name in wanted][number::parts]
    counts: dict[str, collections.Counter[str]] = {
        name: collections.Counter() for name in options.dtypes.split(",")
    }
    failures: list[str] = []
    for operator in chosen:
        torch.manual_seed(0)
        for name, count in counts.items():
            dtype = getattr(torch, name)
            if dtype not in operator.dtypes:
                continue
            try:
                samples = list(operator.sample_inputs("cpu", dtype, requires_grad=False))
            except Exception:  # noqa: BLE001 - samples that need packages which are not there
                continue
            step = max(len(samples) // options.samples, 1)
            started = time.perf_counter()
            for place, sample in list(enumerate(samples))[::step][: options.samples]:
                problem = complaint(operator, sample, options)
                kind = "skipped" if problem.startswith("skip") else "failed" if problem else "passed"
                count[kind] += 1
                if kind == "failed":
                    label = f"{operator.name}{'.' + operator.variant_test_name if operator.variant_test_name else ''}"
                    failures.append(f"{label} {name} #{place}: {' '.join(problem.split())[:300]}")
                    print(failures[-1], flush=True)
            if time.perf_counter() - started > 20:
                print(f"# {operator.name} took {time.perf_counter() - started:.0f} s", flush=True)
    print({name: dict(count) for name, count in counts.items()})
    if not wanted and parts == 1:
        _report(options, counts, failures)
    return 1 if failures else 0


def _report(options: Any, counts: dict[str, collections.Counter[str]], failures: list[str]) -> None:
    """The table of a run of all operators."""
    kinds = ("passed", "failed", "skipped")
    rows = [[name, *(str(count[kind]) for kind in kinds)] for name, count in counts.items()]
    form = "traced graphs after PyTorch's decompositions" if options.trace else "exported programs"
    how = "compiled" if options.compile else "run by the reference interpreter"
    notes = [
        f"Up to {options.samples} samples of each operator of PyTorch's database, as {form}, {how}. Skipped: what "
        "eager PyTorch refuses or does not export, complex and sparse tensors, results that are not tensors.",
        "",
        "## Failures",
        "",
        *([f"- {one}" for one in failures] or ["None."]),
    ]
    title = "PyTorch's samples of its operators through the importer"
    write_table(options.report, title, ["element type", *kinds], rows, "\n".join(notes))


if __name__ == "__main__":
    sys.exit(main())
