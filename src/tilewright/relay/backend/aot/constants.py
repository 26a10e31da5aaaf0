"""The constants of a model: one block of bytes, and that block inside C source or LLVM IR.

The bytes are little-endian, as every target's are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.relay.backend.aot.plan import MemoryPlan
from tilewright.runtime.ndarray import NDArray
from tilewright.support.arena import ALIGNMENT

_BYTES_A_LINE = 32

# Parameters may be hundreds of megabytes: the text of each byte is looked up.
_NUMBERS = [str(byte) for byte in range(256)]
_ESCAPES = np.frombuffer(b"".join(b"\\%02x" % byte for byte in range(256)), "uint8").reshape(256, 3)


def pack_constants(plan: MemoryPlan, nodes: Mapping[str, int], values: Mapping[str, NDArray]) -> bytes:
    """The content of the constants' region."""
    block = bytearray(plan.constants_size)
    for name, node in nodes.items():
        content = values[name].numpy().tobytes()
        block[plan.constants[node] : plan.constants[node] + len(content)] = content
    return bytes(block)


def as_c(symbol: str, content: bytes) -> str:
    """C text with the bytes, and a function that returns their address."""
    lines = [
        ",".join([_NUMBERS[byte] for byte in content[at : at + _BYTES_A_LINE]]) + ","
        for at in range(0, len(content), _BYTES_A_LINE)
    ]
    return "\n".join(
        [
            "#include <stdint.h>",
            "",
            f"static const _Alignas({ALIGNMENT}) uint8_t {symbol}_data[{len(content)}] = {{",
            *lines,
            "};",
            "",
            f"static void* {symbol}(void) {{ return (void*){symbol}_data; }}",
            "",
            "",
        ]
    )


def as_llvm(symbol: str, content: bytes) -> str:
    """LLVM IR with the bytes, and a function that returns their address; once inlined, nothing of it is left."""
    text = _ESCAPES[np.frombuffer(content, "uint8")].tobytes().decode()
    return (
        f'@{symbol}_data = internal constant [{len(content)} x i8] c"{text}", align {ALIGNMENT}\n'
        f"define linkonce_odr hidden ptr @{symbol}() {{ ret ptr @{symbol}_data }}\n"
    )
