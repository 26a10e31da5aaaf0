"""What is known about CPUs by their LLVM name: features, caches and arithmetic units.

Only what schedules depend on is listed. The size of a shared cache is one core's share of it in a typical model. A CPU
that LLVM knows but this table does not is treated as the baseline of its family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class CPUModel:
    """One CPU core: its features by LLVM's names, cache bytes, and multiply-add units with their latency."""

    features: frozenset[str]
    l1d_bytes: int = 32 << 10
    l2_bytes: int = 256 << 10
    l3_bytes: int = 0
    fma_units: int = 2
    fma_latency: int = 4
    cores: int = 4


def _features(names: str) -> frozenset[str]:
    return frozenset(names.split())


_X86_V1 = _features("64bit sse sse2 cmov cx8 fxsr mmx")
_X86_V2 = _X86_V1 | _features("sse3 ssse3 sse4.1 sse4.2 popcnt cx16 sahf crc32")
_X86_AVX = _X86_V2 | _features("avx xsave")
_X86_V3 = _X86_AVX | _features("avx2 fma f16c bmi bmi2 lzcnt movbe")
_X86_V4 = _X86_V3 | _features("avx512f avx512bw avx512cd avx512dq avx512vl")
_ICELAKE = _X86_V4 | _features(
    "avx512vnni avx512ifma avx512vbmi avx512vbmi2 avx512bitalg avx512vpopcntdq gfni vaes"
)
_SAPPHIRE = _ICELAKE | _features("avxvnni avx512bf16 avx512fp16 amx-tile amx-int8 amx-bf16")

_OLD_X86 = CPUModel(_X86_V1, fma_units=0)
_NEHALEM = CPUModel(_X86_V2, l3_bytes=2 << 20, fma_units=0)
_SANDYBRIDGE = CPUModel(_X86_AVX, l3_bytes=2 << 20, fma_units=0)
_HASWELL = CPUModel(_X86_V3, l3_bytes=2 << 20, fma_latency=5)
_SKYLAKE = CPUModel(_X86_V3, l3_bytes=2 << 20)
_ALDERLAKE = CPUModel(_X86_V3 | {"avxvnni", "gfni", "vaes"}, 48 << 10, 1280 << 10, 3 << 20)
_SKYLAKE_SERVER = CPUModel(_X86_V4, 32 << 10, 1 << 20, 1408 << 10, cores=16)
_ICELAKE_SERVER = CPUModel(_ICELAKE, 48 << 10, 1280 << 10, 1536 << 10, cores=32)
_ICELAKE_CLIENT = CPUModel(_ICELAKE, 48 << 10, 512 << 10, 2 << 20, fma_units=1)
_SAPPHIRE_RAPIDS = CPUModel(_SAPPHIRE, 48 << 10, 2 << 20, 1920 << 10, cores=48)
_ZEN2 = CPUModel(_X86_V3, 32 << 10, 512 << 10, 4 << 20, fma_latency=5, cores=8)
# Zen 4 splits 512-bit multiply-adds over two 256-bit pipes: one a cycle.
_ZEN4 = CPUModel(_ICELAKE | {"avx512bf16"}, 32 << 10, 1 << 20, 4 << 20, fma_units=1, cores=8)

X86: Final[dict[str, CPUModel]] = {
    "generic": _OLD_X86,
    "x86-64": _OLD_X86,
    "x86-64-v2": _NEHALEM,
    "x86-64-v3": _SKYLAKE,
    "x86-64-v4": _SKYLAKE_SERVER,
    "nehalem": _NEHALEM,
    "westmere": _NEHALEM,
    "silvermont": CPUModel(_X86_V2, 24 << 10, 1 << 20, fma_units=0),
    "goldmont": CPUModel(_X86_V2, 24 << 10, 1 << 20, fma_units=0),
    "tremont": CPUModel(_X86_V2, 32 << 10, 1536 << 10, fma_units=0),
    "sandybridge": _SANDYBRIDGE,
    "corei7-avx": _SANDYBRIDGE,
    "ivybridge": replace(_SANDYBRIDGE, features=_X86_AVX | {"f16c"}),
    "core-avx-i": replace(_SANDYBRIDGE, features=_X86_AVX | {"f16c"}),
    "haswell": _HASWELL,
    "core-avx2": _HASWELL,
    "broadwell": _HASWELL,
    "skylake": _SKYLAKE,
    "skylake-avx512": _SKYLAKE_SERVER,
    "skx": _SKYLAKE_SERVER,
    "cascadelake": replace(_SKYLAKE_SERVER, features=_X86_V4 | {"avx512vnni"}),
    "cooperlake": replace(_SKYLAKE_SERVER, features=_X86_V4 | {"avx512vnni", "avx512bf16"}),
    "icelake-client": _ICELAKE_CLIENT,
    "icelake-server": _ICELAKE_SERVER,
    "tigerlake": replace(_ICELAKE_CLIENT, l2_bytes=1280 << 10, l3_bytes=3 << 20),
    "rocketlake": _ICELAKE_CLIENT,
    "sapphirerapids": _SAPPHIRE_RAPIDS,
    "emeraldrapids": replace(_SAPPHIRE_RAPIDS, l3_bytes=5 << 20),
    "graniterapids": replace(_SAPPHIRE_RAPIDS, features=_SAPPHIRE | {"amx-fp16"}, l3_bytes=4 << 20),
    "alderlake": _ALDERLAKE,
    "raptorlake": replace(_ALDERLAKE, l2_bytes=2 << 20),
    "meteorlake": replace(_ALDERLAKE, l2_bytes=2 << 20),
    "arrowlake": replace(_ALDERLAKE, l2_bytes=3 << 20),
    "lunarlake": replace(_ALDERLAKE, features=_ALDERLAKE.features | {"avxvnniint8"}, l2_bytes=2560 << 10),
    "gracemont": replace(_ALDERLAKE, l1d_bytes=32 << 10, l2_bytes=2 << 20),
    "sierraforest": CPUModel(_ALDERLAKE.features | {"avxvnniint8"}, 32 << 10, 1 << 20, 768 << 10, cores=96),
    "znver1": replace(_ZEN2, l3_bytes=2 << 20, fma_units=1),
    "znver2": _ZEN2,
    "znver3": replace(_ZEN2, features=_X86_V3 | {"vaes"}, fma_latency=4),
    "znver4": _ZEN4,
    "znver5": replace(_ZEN4, features=_ZEN4.features | {"avxvnni"}, l1d_bytes=48 << 10, fma_units=2),
}

_ARM_V8 = _features("neon fp-armv8")
_ARM_V82 = _ARM_V8 | _features("lse rdm fullfp16 dotprod")
_ARM_V86 = _ARM_V82 | _features("bf16 i8mm fp16fml")
_CORTEX_A72 = CPUModel(_ARM_V8, 32 << 10, 1 << 20, fma_latency=7)
_CORTEX_A76 = CPUModel(_ARM_V82, 64 << 10, 512 << 10, 1 << 20)
_NEOVERSE_N1 = CPUModel(_ARM_V82, 64 << 10, 1 << 20, 1 << 20, cores=32)
# Scalable vectors are not used: code is made for fixed 128-bit vectors, of which these cores have four units.
_NEOVERSE_V1 = CPUModel(_ARM_V86 | {"sve"}, 64 << 10, 1 << 20, 1 << 20, fma_units=4, cores=64)
_APPLE_M1 = CPUModel(_ARM_V82 | {"fp16fml"}, 128 << 10, 3 << 20, fma_units=4)
_APPLE_M2 = CPUModel(_ARM_V86, 128 << 10, 4 << 20, fma_units=4)

AARCH64: Final[dict[str, CPUModel]] = {
    "generic": CPUModel(_ARM_V8, 32 << 10, 512 << 10),
    "cortex-a34": CPUModel(_ARM_V8, fma_units=1),
    "cortex-a35": CPUModel(_ARM_V8, fma_units=1),
    "cortex-a53": CPUModel(_ARM_V8, 32 << 10, 128 << 10, fma_units=1, fma_latency=8),
    "cortex-a55": CPUModel(_ARM_V82, 32 << 10, 128 << 10, 256 << 10, fma_units=1, fma_latency=8),
    "cortex-a57": replace(_CORTEX_A72, fma_latency=9, l2_bytes=512 << 10),
    "cortex-a72": _CORTEX_A72,
    "cortex-a73": replace(_CORTEX_A72, fma_latency=7),
    "cortex-a75": replace(_CORTEX_A76, l2_bytes=256 << 10),
    "cortex-a76": _CORTEX_A76,
    "cortex-a77": _CORTEX_A76,
    "cortex-a78": _CORTEX_A76,
    "cortex-a76ae": _CORTEX_A76,
    "cortex-a78ae": replace(_CORTEX_A76, l2_bytes=256 << 10),
    "cortex-a78c": _CORTEX_A76,
    "cortex-a510": CPUModel(_ARM_V86 | {"sve", "sve2"}, 32 << 10, 256 << 10, 512 << 10, fma_units=1),
    "cortex-a710": replace(_CORTEX_A76, features=_ARM_V86 | {"sve", "sve2"}),
    "cortex-a715": replace(_CORTEX_A76, features=_ARM_V86 | {"sve", "sve2"}),
    "cortex-x1": replace(_CORTEX_A76, l2_bytes=1 << 20, fma_units=4),
    "cortex-x1c": replace(_CORTEX_A76, l2_bytes=1 << 20, fma_units=4),
    "cortex-a520": CPUModel(_ARM_V86 | {"sve", "sve2"}, 32 << 10, 256 << 10, 512 << 10, fma_units=1),
    "cortex-a720": replace(_CORTEX_A76, features=_ARM_V86 | {"sve", "sve2"}),
    "cortex-a725": replace(_CORTEX_A76, features=_ARM_V86 | {"sve", "sve2"}, l2_bytes=1 << 20),
    "cortex-x2": replace(_NEOVERSE_V1, features=_ARM_V86 | {"sve", "sve2"}, cores=4),
    "cortex-x3": replace(_NEOVERSE_V1, features=_ARM_V86 | {"sve", "sve2"}, cores=4),
    "cortex-x4": replace(_NEOVERSE_V1, features=_ARM_V86 | {"sve", "sve2"}, l2_bytes=2 << 20, cores=4),
    "cortex-x925": replace(
        _NEOVERSE_V1, features=_ARM_V86 | {"sve", "sve2"}, l2_bytes=2 << 20, fma_units=6, cores=4
    ),
    "neoverse-e1": CPUModel(_ARM_V82, 32 << 10, 256 << 10, fma_units=1),
    "neoverse-n1": _NEOVERSE_N1,
    "neoverse-n2": replace(_NEOVERSE_N1, features=_ARM_V86 | {"sve", "sve2"}),
    "neoverse-n3": replace(_NEOVERSE_N1, features=_ARM_V86 | {"sve", "sve2"}, l2_bytes=2 << 20),
    "cobalt-100": replace(_NEOVERSE_N1, features=_ARM_V86 | {"sve", "sve2"}, cores=96),
    "neoverse-v1": _NEOVERSE_V1,
    "neoverse-v3": replace(_NEOVERSE_V1, features=_ARM_V86 | {"sve", "sve2"}, l2_bytes=2 << 20),
    "neoverse-v2": replace(_NEOVERSE_V1, features=_ARM_V86 | {"sve", "sve2"}, l2_bytes=2 << 20),
    "grace": replace(_NEOVERSE_V1, features=_ARM_V86 | {"sve", "sve2"}, cores=72),
    "a64fx": CPUModel(
        _ARM_V8 | {"fullfp16", "lse", "rdm", "sve"}, 64 << 10, 682 << 10, fma_latency=9, cores=48
    ),
    "ampere1": replace(_NEOVERSE_N1, features=_ARM_V86 - {"fp16fml"}, l2_bytes=2 << 20),
    "carmel": CPUModel(_ARM_V8 | {"fullfp16", "lse", "rdm"}, 64 << 10, 1 << 20, 512 << 10),
    "kryo": CPUModel(_ARM_V8, 32 << 10, 512 << 10),
    "thunderx2t99": CPUModel(_ARM_V8 | {"lse", "rdm"}, 32 << 10, 256 << 10, 1 << 20, fma_latency=6, cores=32),
    "tsv110": CPUModel(_ARM_V82 | {"fp16fml"}, 64 << 10, 512 << 10, 1 << 20, cores=32),
    "apple-a14": _APPLE_M1,
    "apple-m1": _APPLE_M1,
    "apple-m2": _APPLE_M2,
    "apple-m3": _APPLE_M2,
    "apple-m4": _APPLE_M2,
    "apple-m5": _APPLE_M2,
    "apple-a12": replace(_APPLE_M1, features=_ARM_V8 | {"lse", "rdm", "fullfp16"}, fma_units=3),
    "apple-a13": replace(_APPLE_M1, fma_units=3),
    "apple-a15": _APPLE_M2,
    "apple-a16": _APPLE_M2,
    "apple-a17": _APPLE_M2,
    "oryon-1": replace(_APPLE_M2, features=_ARM_V86 - {"fp16fml"}, l1d_bytes=96 << 10, cores=12),
}

_ARM_V7 = _features("neon vfp3")
_ARM_V7_FMA = _ARM_V7 | {"vfp4"}

# The latency is that of a sum that waits for the one before, which these cores forward to their adder.
ARM: Final[dict[str, CPUModel]] = {
    "generic": CPUModel(frozenset(), 16 << 10, 128 << 10, fma_units=0),
    "cortex-a5": CPUModel(_ARM_V7_FMA, fma_units=1),
    "cortex-a7": CPUModel(_ARM_V7_FMA, 32 << 10, 128 << 10, fma_units=1),
    "cortex-a8": CPUModel(_ARM_V7, fma_units=0),
    "cortex-a9": CPUModel(_ARM_V7, 32 << 10, 256 << 10, fma_units=0),
    "cortex-a15": CPUModel(_ARM_V7_FMA, 32 << 10, 512 << 10),
    "cortex-a17": CPUModel(_ARM_V7_FMA, 32 << 10, 512 << 10),
    "cortex-a53": CPUModel(_ARM_V7_FMA | {"fp-armv8"}, 32 << 10, 128 << 10, fma_units=1),
    "cortex-a72": CPUModel(_ARM_V7_FMA | {"fp-armv8"}, 32 << 10, 1 << 20, fma_latency=3),
    "cortex-m4": CPUModel(_features("dsp vfp4d16sp"), 0, 0, fma_units=1, fma_latency=3, cores=1),
    "cortex-m7": CPUModel(_features("dsp vfp4d16"), 16 << 10, 0, fma_units=1, fma_latency=3, cores=1),
    "cortex-m55": CPUModel(_features("dsp mve.fp"), 16 << 10, 0, fma_units=1, cores=1),
}

_RV64GC = _features("m a f d c")

RISCV: Final[dict[str, CPUModel]] = {
    "generic": CPUModel(frozenset(), 32 << 10, 128 << 10, fma_units=0),
    "generic-rv32": CPUModel(frozenset(), 16 << 10, 0, fma_units=0, cores=1),
    "generic-rv64": CPUModel(frozenset(), 32 << 10, 128 << 10, fma_units=0),
    "rv64gc": CPUModel(_RV64GC, 32 << 10, 128 << 10, fma_units=1),
    "rv64gcv": CPUModel(_RV64GC | {"v"}, 32 << 10, 512 << 10, fma_units=1),
    "sifive-u54": CPUModel(_RV64GC, 32 << 10, 512 << 10, fma_units=1, fma_latency=5),
    "sifive-u74": CPUModel(_RV64GC, 32 << 10, 512 << 10, fma_units=1, fma_latency=5),
    "sifive-e31": CPUModel(_features("m a c"), 16 << 10, 0, fma_units=0, cores=1),
    "sifive-e76": CPUModel(_features("m a f c"), 32 << 10, 0, fma_units=1, cores=1),
    "sifive-x280": CPUModel(_RV64GC | {"v", "zvl512b"}, 32 << 10, 512 << 10, 1 << 20, fma_units=1),
    "spacemit-x60": CPUModel(_RV64GC | {"v", "zvl256b"}, 32 << 10, 128 << 10, cores=8, fma_units=1),
}

_WASM = CPUModel(frozenset(), 32 << 10, 256 << 10, fma_units=0)
WASM: Final[dict[str, CPUModel]] = {
    "generic": _WASM,
    "mvp": _WASM,
    "lime1": _WASM,
    "bleeding-edge": replace(_WASM, features=frozenset({"simd128", "relaxed-simd", "fp16"})),
}

MODELS: Final[dict[str, dict[str, CPUModel]]] = {
    "x86": X86,
    "aarch64": AARCH64,
    "arm": ARM,
    "riscv": RISCV,
    "wasm": WASM,
}
