"""What the innermost loops of generated code consist of: multiply-adds, loads, spills and the rest.

The micro-kernel of a product or a convolution is a loop that multiplies, adds and loads, and little else; what the
register allocator could not hold shows as accesses of the stack. This reads the assembly that ``get_source("asm")``
gives, for x86, AArch64, ARM and RISC-V.

Run it:  python tools/inner_loops.py FILE.s
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LABEL = re.compile(r"^([.\w$]+):")
_INSTRUCTION = re.compile(r"^\s+([a-z][\w.]*)(?:\s+(.*))?$")
_BRANCH = re.compile(
    r"^(?:j\w+|b\.\w+|b|bne|beq|blt|bge|bltu|bgeu|bnez|beqz|bgtz|bltz|cbz|cbnz|tbz|tbnz|b(?:ne|eq|lt|le|gt|ge|hi|lo|hs|ls|mi|pl|cc|cs))$"
)
_MULTIPLY_ADD = re.compile(
    r"^(?:v?fn?m(?:add|sub)\w*|fml[as]\w*(?:\.\w+)?|fmadd\w*|[su]dot|usdot|sudot|[su]mmla|usmmla|bfdot|bfmmla|bfmlal[bt]|"
    r"[su]mlal2?|mla|vfm[as](?:\.\w+)*|vml[as]l?(?:\.\w+)*|v[su]dot(?:\.\w+)*|vf(?:madd|macc|msac|nmsac)\.\w+|vmacc\.\w+|"
    r"vwmacc\w*\.\w+|fmadd\.[sdh]|vpdp\w+|pmaddwd|vpmaddwd|vpmaddubsw|tdp\w+)$"
)
_LOAD = re.compile(
    r"^(?:ld\w*(?:\.\w+)?|vld\w*(?:\.\w+)?|vle\d+\.v|vlse\d+\.v|fl[wdh]|l[bhwd]u?|v?mov[au]p[sd]|vbroadcast\w+|v?movs[sd]|vmovdq\w+)$"
)
_STACK = re.compile(r"\[sp\b|\(sp\)|\(%rsp")
_ADDRESS = ("add", "addi", "sub", "mov", "mv")


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its label and its instructions, each a mnemonic with its operands."""

    label: str
    instructions: tuple[tuple[str, str], ...]

    @property
    def multiply_adds(self) -> int:
        """Instructions that multiply and add."""
        return sum(_MULTIPLY_ADD.match(name) is not None for name, _ in self.instructions)

    @property
    def loads(self) -> int:
        """Instructions that read memory, those of the stack left out."""
        return sum(
            _is_load(name, operands) and not stack
            for (name, operands), stack in zip(self.instructions, self._of_stack(), strict=True)
        )

    @property
    def spills(self) -> int:
        """Instructions that read or write the stack, also through a register that holds an address of it."""
        return sum(self._of_stack())

    def _of_stack(self) -> list[bool]:
        """For each instruction whether it accesses the stack."""
        found: list[bool] = []
        holding: set[str] = set()
        for name, operands in self.instructions:
            first = re.split(r"[\s,!]", operands)[0]
            by_register = {match.group(1) for match in re.finditer(r"[\[(](\w+)", operands)}
            if name.startswith(("vldm", "vstm", "ldm", "stm")):
                by_register.add(first)
            found.append(_STACK.search(operands) is not None or bool(by_register & holding))
            # add r9, sp, #24: an address of the stack in a register.
            if name in _ADDRESS and {*re.split(r"[\s,]+", operands)[1:]} & {"sp", *holding}:
                holding.add(first)
            elif not name.startswith(("vldm", "vstm", "st", "vst")):
                holding.discard(first)
        return found

    @property
    def useful(self) -> float:
        """The share of the instructions that multiply and add, or load."""
        return (self.multiply_adds + self.loads) / len(self.instructions)

    def __str__(self) -> str:
        count = len(self.instructions)
        return (
            f"{self.label}: {count} instructions, {self.multiply_adds} multiply-adds, {self.loads} loads, "
            f"{self.spills} spills, {100 * self.useful:.0f} % useful"
        )


def _is_load(name: str, operands: str) -> bool:
    if _LOAD.match(name) is None:
        return False
    # On x86 a move is a load where its first operand is memory.
    return (
        not name.startswith(("mov", "vmov"))
        or "(" in operands.split(",")[0] + operands[: operands.find(")") + 1]
    )


def innermost_loops(assembly: str) -> list[Loop]:
    """Every loop that has no other loop in it: from a label to a branch back to it.

    The assembly may be that of several modules one after the other, whose labels are the same.
    """
    lines: list[tuple[str, str]] = []
    where: dict[str, int] = {}
    loops: list[Loop] = []
    last = -1  # where the loop that was found last begins
    for text in assembly.splitlines():
        plain = re.split(r"//|\s;|\s@|\s##?\s", text)[0].rstrip()
        label, instruction = _LABEL.match(plain), _INSTRUCTION.match(plain)
        if label is not None:
            where[label.group(1)] = len(lines)
        elif instruction is not None:
            name, operands = instruction.group(1), (instruction.group(2) or "").strip()
            lines.append((name, operands))
            target = re.split(r"[\s,]+", operands)[-1]
            if _BRANCH.match(name) and target in where:
                begin = where[target]
                if begin > last:
                    loops.append(Loop(target, tuple(lines[begin:])))
                    last = begin
    return loops


def micro_kernel(assembly: str) -> Loop:
    """The innermost loop with the most multiply-adds; ``ValueError`` where no loop has any."""
    loops = [loop for loop in innermost_loops(assembly) if loop.multiply_adds]
    if not loops:
        raise ValueError("no innermost loop of the code multiplies and adds")
    return max(loops, key=lambda loop: loop.multiply_adds)


def main(arguments: Sequence[str] | None = None) -> int:
    """List the innermost loops of a file of assembly that multiply and add."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("FILE", help="assembly, as a library's get_source('asm') gives it")
    parsed = parser.parse_args(arguments)
    for loop in innermost_loops(Path(parsed.FILE).read_text()):
        if loop.multiply_adds:
            print(loop)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
