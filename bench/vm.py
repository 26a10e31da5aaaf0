"""The cost of an instruction of the virtual machine, with kernels that do nothing.

Run as ``python bench/vm.py`` (writes bench/results/vm.md). Each program is a sequence of a thousand groups of
instructions; the cost per instruction is that of the whole, minus that of an empty function. The budget is one
microsecond.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tilewright.runtime import Module, cpu
from tilewright.runtime import ndarray as nd
from tilewright.runtime.vm import Executable, VirtualMachine
from tilewright.runtime.vm_program import (
    Instruction,
    Opcode,
    VMFunction,
    VMKernel,
    VMParameter,
    VMProgram,
    pack_dtype,
)
from tilewright.support.dtype import DataType

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import write_table  # noqa: E402
from runtime_overhead import kernels  # noqa: E402

GROUPS = 1000
FLOAT = pack_dtype(DataType("float32"))
Code = list[Instruction]


def one(opcode: Opcode, *operands: int | tuple[int, ...]) -> Instruction:
    """An instruction."""
    return Instruction(opcode, operands)


ROWS: dict[str, Callable[[], Code]] = {
    "move, end": lambda: [one(Opcode.MOVE, 1, 0), one(Opcode.KILL, (1,))],
    "number, test, jump": lambda: [
        one(Opcode.LOAD_CONSTI, 1, 1),
        one(Opcode.IF, 1, 1, 5, 5),
        one(Opcode.GOTO, 2),
    ],
    "load a constant": lambda: [one(Opcode.LOAD_CONST, 1, 0)],
    "make, look at and end a tuple": lambda: [
        one(Opcode.ALLOC_DATA, 1, 0, (0, 0)),
        one(Opcode.GET_TAG, 2, 1),
        one(Opcode.GET_FIELD, 3, 1, 1),
        one(Opcode.KILL, (1, 3)),
    ],
    "a reference": lambda: [
        one(Opcode.ALLOC_REF, 1, 0),
        one(Opcode.REF_WRITE, 1, 0),
        one(Opcode.REF_READ, 2, 1),
        one(Opcode.KILL, (1, 2)),
    ],
    "call a function": lambda: [one(Opcode.INVOKE, 1, 1, (0,))],
    "make and call a closure": lambda: [
        one(Opcode.ALLOC_CLOSURE, 1, 1, (0,)),
        one(Opcode.INVOKE_CLOSURE, 2, 1, ()),
    ],
    "run a kernel on a new tensor": lambda: [
        one(Opcode.ALLOC_STORAGE, 1, -1, 64, FLOAT),
        one(Opcode.ALLOC_TENSOR, 2, 1, 0, FLOAT, (4, 4)),
        one(Opcode.INVOKE_PACKED, 0, 1, (0, 2)),
        one(Opcode.KILL, (1, 2)),
    ],
    "run a kernel on a tensor of computed shape": lambda: [
        one(Opcode.SHAPE_OF, 3, 0),
        one(Opcode.ALLOC_STORAGE, 1, 3, 0, FLOAT),
        one(Opcode.ALLOC_TENSOR_REG, 2, 1, 0, FLOAT, 3),
        one(Opcode.INVOKE_PACKED, 0, 1, (0, 2)),
        one(Opcode.KILL, (1, 2, 3)),
    ],
    "another shape": lambda: [
        one(Opcode.SHAPE_OF, 1, 0),
        one(Opcode.RESHAPE_TENSOR, 2, 0, 1),
        one(Opcode.KILL, (1, 2)),
    ],
}


def machine(library: Module, group: Code) -> VirtualMachine:
    """A machine whose ``main`` is many such groups; function 1 gives its argument back."""
    code = [word for _ in range(GROUPS) for instruction in group for word in instruction.words()]
    parameters = (VMParameter("x"),)
    end = tuple(one(Opcode.RET, 0).words())
    functions = [VMFunction("main", parameters, 4, (*code, *end)), VMFunction("same", parameters, 1, end)]
    program = VMProgram(functions, [VMKernel("empty", "nothing")], [nd.array(np.zeros(4, "float32"))])
    return VirtualMachine(Executable(library, program), cpu(0))


def measure() -> list[list[str]]:
    """The rows of the table."""
    library = kernels()
    x = nd.array(np.zeros((4, 4), "float32"))
    found = []
    empty = min(machine(library, []).benchmark(cpu(0), x, number=1000, repeat=20).results)
    found.append(["a call of an empty function, from C", "1", f"{empty * 1e9:.0f}", f"{empty * 1e9:.0f}"])
    for name, group in ROWS.items():
        instructions = len(group()) + (1 if "call" in name else 0)  # the return of what is called
        seconds = machine(library, group()).benchmark(cpu(0), x, number=10, repeat=40).results
        costs = [(value - empty) / GROUPS / instructions * 1e9 for value in seconds]
        found.append([name, str(instructions), f"{min(costs):.0f}", f"{statistics.median(costs):.0f}"])
    return found


def main() -> None:
    """Prints the table, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "vm.md")
    load = os.getloadavg()[0]
    notes = f"The machine's load average was {load:.2f} when the run began."
    header = ["instructions", "number", "each, best, ns", "each, median, ns"]
    write_table(
        parser.parse_args().output,
        "What an instruction of the virtual machine costs",
        header,
        measure(),
        notes,
    )


if __name__ == "__main__":
    main()
