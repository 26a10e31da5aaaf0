"""Runs the conformance suite that comes with the ``onnx`` package.

    python tests/relay/frontend/onnx/conformance.py                  all of it, with a summary by operator
    python tests/relay/frontend/onnx/conformance.py -k lstm -v       some cases, with what went wrong
    python tests/relay/frontend/onnx/conformance.py --update         and write conformance_failures.txt anew

Cases run in processes of their own, so that one that crashes or never ends is one failure and no more.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from tilewright.runtime.container import ADT

FAILURES = Path(__file__).with_name("conformance_failures.txt")
KINDS = ("simple", "pytorch-converted", "pytorch-operator", "real")


@dataclass
class Case:
    """One model with inputs and the outputs that it must have."""

    name: str
    kind: str
    test: Any

    def model(self) -> Any:
        """The model."""
        if self.test.model is not None:
            return self.test.model
        return onnx.load(str(self._path()))

    def _path(self) -> Path:
        if self.test.model_dir is not None:
            return Path(self.test.model_dir) / "model.onnx"
        return Path(onnx.__file__).parent.parent / str(self.test.url)

    @property
    def operators(self) -> str:
        """The operators of a node case; the kind of another."""
        if self.kind != "node":
            return self.kind
        if "_expanded" in self.name:
            return "(expanded functions)"
        return ",".join(sorted({node.op_type for node in self.test.model.graph.node}))

    def data(self, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
        """Inputs and outputs."""
        if self.test.data_sets is not None:
            for inputs, outputs in self.test.data_sets:
                yield [_array(one) for one in inputs], [_array(one) for one in outputs]
        elif self.test.model_dir is not None:
            for folder in sorted(Path(self.test.model_dir).glob("test_data_set*")):
                yield _read(folder, "input", model.graph.input), _read(folder, "output", model.graph.output)
        else:
            known = {tensor.name for tensor in model.graph.initializer}
            inputs = [
                Runner.generate_dummy_data(info, name=self.name)
                for info in model.graph.input
                if info.name not in known
            ]
            path = self._path()
            expected = path.with_name(f"{path.stem}_output_0.pb")
            tensor = onnx.TensorProto()
            tensor.ParseFromString(expected.read_bytes())
            yield inputs, [onnx.numpy_helper.to_array(tensor)]


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _read(folder: Path, what: str, infos: Any) -> list[Any]:
    found: list[Any] = []
    for position in range(len(list(folder.glob(f"{what}_*.pb")))):
        Runner._load_proto(None, str(folder / f"{what}_{position}.pb"), found, infos[position].type)
    return found


def collect() -> dict[str, Case]:
    """All cases by name, those of nodes first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {test.name: Case(test.name, "node", test) for test in collect_testcases()}
    for kind in KINDS:
        for test in sorted(load_model_tests(kind=kind), key=lambda one: str(one.name)):
            name = test.name if test.name not in found else f"{test.name}_{kind}"
            found[name] = Case(name, kind, test)
    return found


def check(case: Case, executor: str | None, opt_level: int) -> None:
    """Run a case and compare as the suite does; an error says what is wrong."""
    from tilewright.relay.frontend.onnx import backend

    model = case.model()
    prepared = backend.prepare(model, executor=executor, opt_level=opt_level)
    for inputs, expected in case.data(model):
        compare(expected, list(prepared.run(inputs)), case.test.rtol, case.test.atol)


def compare(expected: list[Any], found: list[Any], rtol: float, atol: float) -> None:
    """The suite's rule: shapes and element types are equal, values close. (The suite's own function does not compare
    scalars within sequences.)"""
    assert len(found) == len(expected), f"{len(found)} values, {len(expected)} are expected"
    for value, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, (list, tuple)):
            assert isinstance(value, (list, tuple, ADT)), (
                f"{type(value).__name__} where a sequence is expected"
            )
            compare(list(wanted), list(value), rtol, atol)
            continue
        wanted = np.asarray(wanted)
        assert value.shape == wanted.shape, f"the shape is {value.shape}, {wanted.shape} is expected"
        assert value.dtype == wanted.dtype, f"the element type is {value.dtype}, {wanted.dtype} is expected"
        allowed = rtol
        if wanted.dtype.name == "bfloat16":
            allowed = max(rtol, 2**-6)
            value, wanted = value.astype("float32"), wanted.astype("float32")
        np.testing.assert_allclose(value, wanted, rtol=allowed, atol=atol)


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:6]) or "no message"
    return f"{type(error).__name__}: {re.sub(chr(0x2F) + r'[^ ]*' + chr(0x2F), '', text)[:240]}"


def _work(cases: dict[str, Case], pipe: Connection, executor: str | None, opt_level: int) -> None:
    """A worker: takes names, gives reasons (None for a case that passes). The workers share the processors: each of
    them compiles and runs on one."""
    os.environ.update(TILEWRIGHT_COMPILE_PROCESSES="1", TILEWRIGHT_NUM_THREADS="1")
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    while True:
        name = pipe.recv()
        if name is None:
            return
        try:
            check(cases[name], executor, opt_level)
            pipe.send(None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the case failed and the next one runs
            pipe.send(_reason(error))


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    case: str = ""
    begun: float = 0.0


@dataclass
class Results:
    """Reasons by case name (None for those that pass), and seconds."""

    reasons: dict[str, str | None] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def failures(self) -> dict[str, str]:
        """Those that fail."""
        return {name: reason for name, reason in self.reasons.items() if reason is not None}


def run(
    cases: dict[str, Case],
    jobs: int = 2,
    limit: float = 60.0,
    executor: str | None = None,
    opt_level: int = 3,
) -> Results:
    """Run cases in parallel processes, each within a limit of seconds."""
    context = multiprocessing.get_context("fork")
    results = Results()
    # Whole models take longest: they begin first.
    waiting = sorted(cases, key=lambda name: cases[name].kind == "real")

    def start() -> _Worker:
        mine, theirs = context.Pipe()
        process = context.Process(target=_work, args=(cases, theirs, executor, opt_level), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, mine)

    def give(worker: _Worker) -> bool:
        if not waiting:
            worker.pipe.send(None)
            return False
        worker.case, worker.begun = waiting.pop(), time.monotonic()
        worker.pipe.send(worker.case)
        return True

    workers = [start() for _ in range(min(jobs, len(cases)))]
    busy = [worker for worker in workers if give(worker)]
    while busy:
        ready = wait([worker.pipe for worker in busy], timeout=1.0)
        for worker in list(busy):
            spent = time.monotonic() - worker.begun
            if worker.pipe in ready:
                try:
                    reason = worker.pipe.recv()
                except EOFError:
                    reason = "the process ended"
            elif spent > limit:
                worker.process.kill()
                reason = f"did not end within {limit:.0f} s"
            else:
                continue
            results.reasons[worker.case], results.seconds[worker.case] = reason, spent
            if reason is not None and reason.startswith(("the process ended", "did not end")):
                worker.process.join()
                busy.remove(worker)
                worker = start()
                busy.append(worker)
            if not give(worker):
                busy.remove(worker)
                worker.process.join()
    return results


def listed_failures() -> dict[str, str]:
    """The cases that are known to fail, with the reason of each."""
    found = {}
    for line in FAILURES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            found[name] = reason
    return found


def write_failures(failures: dict[str, str]) -> None:
    """Write the list, one case to a line; reasons that stand there already are kept."""
    known = listed_failures() if FAILURES.exists() else {}
    lines = [f"{name}: {known.get(name, reason)}" for name, reason in sorted(failures.items())]
    FAILURES.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def summary(cases: dict[str, Case], results: Results) -> str:
    """How many pass, for each operator of which some do not."""
    total, passed = Counter[str](), Counter[str]()
    for name, reason in results.reasons.items():
        total[cases[name].operators] += 1
        passed[cases[name].operators] += reason is None
    lines = [
        f"{passed[key]:5} of {total[key]:4}  {key[:90]}" for key in sorted(total) if passed[key] < total[key]
    ]
    nodes = [name for name in results.reasons if cases[name].kind == "node"]
    good = sum(results.reasons[name] is None for name in nodes)
    lines.append(
        f"{good} of {len(nodes)} node cases pass, {sum(passed.values())} of {sum(total.values())} in all"
    )
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Run ONNX's conformance suite.")
    parser.add_argument("-k", default="", help="a regular expression that names of cases contain")
    parser.add_argument("--executor", choices=["graph", "vm", "debug"])
    parser.add_argument("--opt-level", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a case")
    parser.add_argument("--update", action="store_true", help="write conformance_failures.txt")
    parser.add_argument("--json", type=Path, help="write the results to a file")
    parser.add_argument("-v", action="store_true", help="print why cases fail")
    options = parser.parse_args()
    cases = {name: case for name, case in collect().items() if re.search(options.k, name)}
    results = run(cases, options.jobs, options.limit, options.executor, options.opt_level)
    lines = [f"{name}: {reason}" for name, reason in results.failures.items()] if options.v else []
    slow = sorted(results.seconds.items(), key=lambda one: -one[1])[:5]
    lines += [
        summary(cases, results),
        "slowest: " + ", ".join(f"{name} {spent:.1f} s" for name, spent in slow),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    if options.json:
        options.json.write_text(json.dumps({"reasons": results.reasons, "seconds": results.seconds}))
    if options.update:
        write_failures(results.failures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
