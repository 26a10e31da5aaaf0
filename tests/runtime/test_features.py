"""CPU features: what the machine says, against what the system says."""

import platform
from pathlib import Path

import pytest

from tilewright.runtime.features import has_feature, require_features
from tilewright.support.errors import TilewrightError

# LLVM's names that differ from the kernel's.
KERNEL_NAMES = {
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sse4.1": "sse4_1",
    "sse3": "pni",
    "rdrnd": "rdrand",
    "avx512vnni": "avx512_vnni",
}
NAMES = [
    "sse2",
    "sse3",
    "ssse3",
    "sse4.1",
    "popcnt",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "bmi",
    "bmi2",
    "lzcnt",
    "movbe",
]
NAMES += [
    "rdrnd",
    "adx",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512dq",
    "avx512cd",
    "avx512vnni",
    "sse4a",
    "fma4",
    "xop",
]


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(), reason="needs Linux on x86-64"
)
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_kernel(name: str) -> None:
    """The runtime and the kernel agree on every feature both have a name for."""
    flags = next(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")
    ).split()
    assert has_feature(name) == (KERNEL_NAMES.get(name, name) in flags)


def test_unknown_names() -> None:
    """A name nobody knows is neither there nor missing."""
    assert has_feature("no-such-thing") is None
    require_features(["no-such-thing"], "it")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the features named are of x86-64")
def test_every_missing_feature_is_named() -> None:
    """The error names each feature that is missing, and says what to do."""
    missing = [name for name in ("fma4", "xop") if not has_feature(name)]
    if missing:
        with pytest.raises(TilewrightError, match=rf"model\.so needs .*: {', '.join(missing)}\. Compile it"):
            require_features(["sse2", *missing], "model.so")
