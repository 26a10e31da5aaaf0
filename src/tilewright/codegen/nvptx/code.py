"""PTX as data, and how the PTX of several units becomes one module."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from tilewright.codegen.program import LoopProgram
from tilewright.runtime.device_module import Kernel
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target

_VERSION: Final = 1
_HEAD: Final = (".version", ".target", ".address_size")


@dataclass(frozen=True)
class PTXCode:
    """The code of some kernels. ``llvm_ir`` is the optimised LLVM IR, ``text`` the IR before that, and ``program`` the
    loops that both were made from."""

    kernels: tuple[Kernel, ...]
    ptx: str
    llvm_ir: str
    text: str
    program: LoopProgram

    @property
    def function_names(self) -> tuple[str, ...]:
        """The kernels."""
        return tuple([kernel.name for kernel in self.kernels])

    def to_bytes(self) -> bytes:
        """Compressed JSON."""
        kernels = [asdict(kernel) for kernel in self.kernels]
        parts = [_VERSION, kernels, self.ptx, self.llvm_ir, self.text, self.program.json]
        return zlib.compress(json.dumps(parts).encode(), 1)

    @staticmethod
    def from_bytes(block: bytes) -> PTXCode:
        """The reverse; an error where the block is damaged."""
        try:
            version, described, ptx, llvm_ir, text, program = json.loads(zlib.decompress(block))
            if version != _VERSION:
                raise TilewrightError("not kernels of this version")
            kernels = [Kernel.from_json(one) for one in described]
        except (zlib.error, ValueError, TypeError, KeyError) as problem:
            raise TilewrightError(f"the compiled kernels are damaged: {problem}") from None
        return PTXCode(tuple(kernels), ptx, llvm_ir, text, LoopProgram(json=program))

    def stages(self, target: Target) -> dict[str, str]:
        """The LLVM IR as it was written, after LLVM's optimisation, and the PTX."""
        return {"unoptimized.ll": self.text, "optimized.ll": self.llvm_ir, "ptx": self.ptx}


def merged(texts: Sequence[str]) -> str:
    """The PTX of several modules as one: the head of the first, and everything else of all.

    All are for one architecture. Their names differ: each global name begins with that of its kernel.
    """
    first = texts[0]
    rest = [
        "\n".join(line for line in text.splitlines() if not line.startswith(_HEAD)) + "\n"
        for text in texts[1:]
    ]
    return first + "".join(rest)
