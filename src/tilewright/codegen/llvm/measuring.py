"""Functions given as LLVM IR, compiled for this machine, run on several threads at once, and timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.codegen.llvm.machine import load_llvm
from tilewright.target.cpu import llvm_machine_options
from tilewright.target.target import Target

_KEPT: list[Any] = []
"""What owns the code: it lives as long as the process."""


def compile_function(text: str, name: str) -> int:
    """The address of a function given as LLVM IR, optimised for this machine."""
    llvm = load_llvm()
    triple, cpu, features = llvm_machine_options(Target("llvm"))
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _KEPT.append((engine, machine))
    return int(engine.get_function_address(name))


def calls_per_second(calls: Sequence[Callable[[], object]], repeats: int) -> float:
    """How often a second all of these calls can be made at the same time, each by a thread of its own.

    Every thread times its own calls, and its best counts: what else runs on the machine only ever takes away, and
    starting a thread is not part of it. Foreign calls release the interpreter's lock.
    """
    together = threading.Barrier(len(calls))
    best = [0.0] * len(calls)

    def repeat(number: int) -> None:
        together.wait()
        for _ in range(repeats):
            started = time.perf_counter()
            calls[number]()
            best[number] = max(best[number], 1.0 / (time.perf_counter() - started))

    workers = [threading.Thread(target=repeat, args=(number,)) for number in range(1, len(calls))]
    for worker in workers:
        worker.start()
    repeat(0)
    for worker in workers:
        worker.join()
    return sum(best) / len(calls)
