"""CPU features by their LLVM names: what each implies, and the vector unit that they provide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tilewright.support.errors import TargetError

# Each feature, and after the arrow those that it brings along.
_IMPLICATIONS: Final = {
    "x86": """
        sse2 > sse, sse3 > sse2, ssse3 > sse3, sse4.1 > ssse3, sse4.2 > sse4.1, avx > sse4.2, avx2 > avx, fma > avx,
        f16c > avx, avxvnni > avx2, avxvnniint8 > avx2, avx512f > avx2 fma f16c, avx512bw > avx512f,
        avx512cd > avx512f, avx512dq > avx512f, avx512vl > avx512f, avx512vnni > avx512f, avx512ifma > avx512f,
        avx512vpopcntdq > avx512f, avx512bf16 > avx512bw, avx512vbmi > avx512bw, avx512vbmi2 > avx512bw,
        avx512bitalg > avx512bw, avx512fp16 > avx512bw avx512dq avx512vl, avx512vp2intersect > avx512f,
        amx-int8 > amx-tile, amx-bf16 > amx-tile, amx-fp16 > amx-tile
    """,
    "aarch64": """
        neon > fp-armv8, fullfp16 > fp-armv8, fp16fml > fullfp16, dotprod > neon, bf16 > neon, i8mm > neon,
        sve > fullfp16 neon, sve2 > sve
    """,
    "arm": "neon > vfp3, vfp4 > vfp3, fp-armv8 > vfp4, dotprod > neon",
    "riscv": "d > f, v > d zvl128b, zvl256b > zvl128b, zvl512b > zvl256b, zvl1024b > zvl512b",
    "wasm": "relaxed-simd > simd128",
    "hexagon": "",
}
_IMPLIES: Final[dict[str, dict[str, list[str]]]] = {
    family: {
        feature.strip(): brought.split()
        for feature, arrow, brought in (rule.partition(">") for rule in rules.split(","))
        if arrow
    }
    for family, rules in _IMPLICATIONS.items()
}


def checked_attribute(attribute: str) -> str:
    """The attribute as it is, if it starts with a sign as LLVM wants; else ``TargetError``."""
    if not re.fullmatch(r"[+-][\w.+-]+", attribute):
        raise TargetError(
            f"-mattr={attribute}: a machine attribute starts with + or -, as in +avx2 or -avx512f"
        )
    return attribute


def close(family: str, features: Iterable[str]) -> frozenset[str]:
    """The features with all that they imply."""
    implies = _IMPLIES[family]
    closed: set[str] = set()
    waiting = list(features)
    while waiting:
        feature = waiting.pop()
        if feature not in closed:
            closed.add(feature)
            waiting += implies.get(feature, [])
    return frozenset(closed)


def apply_attributes(family: str, features: frozenset[str], attributes: Iterable[str]) -> frozenset[str]:
    """The features after ``+x`` and ``-x`` in order; taking one away takes those that need it."""
    current = set(features)
    for attribute in attributes:
        name = attribute[1:]
        if attribute[0] == "+":
            current |= close(family, [name])
        else:
            current = {feature for feature in current if name not in close(family, [feature])}
    return frozenset(current)


def vector_unit(family: str, features: frozenset[str]) -> tuple[int, int]:
    """The width in bits and the number of the vector registers."""
    if family == "x86":
        if "avx512f" in features:
            return 512, 32
        return (256, 16) if "avx" in features else (128, 16) if "sse2" in features else (32, 8)
    if family == "aarch64" and "neon" in features:
        return 128, 32
    if family == "arm" and features & {"neon", "mve.fp", "mve"}:
        return 128, 16 if "neon" in features else 8
    if family == "riscv" and "v" in features:
        return max(int(name[3:-1]) for name in features if re.fullmatch(r"zvl\d+b", name)), 32
    if family == "wasm" and "simd128" in features:
        return 128, 16
    if family == "hexagon":
        lengths = [int(name[10:-1]) for name in features if re.fullmatch(r"hvx-length\d+b", name)]
        if lengths:
            return max(lengths) * 8, 32
    return 32, 16


def fma_in(family: str, features: frozenset[str]) -> bool:
    """True if one instruction multiplies and adds with one rounding."""
    wanted = {
        "x86": {"fma"},
        "aarch64": {"fp-armv8"},
        "arm": {"vfp4", "fp-armv8", "vfp4d16", "vfp4d16sp", "mve.fp"},
        "riscv": {"f"},
    }
    return bool(features & wanted.get(family, set()))
