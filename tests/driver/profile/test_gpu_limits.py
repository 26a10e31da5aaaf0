"""The peak rates of GPUs, from the description of their generation."""

import pytest

from tilewright.target.gpu import describe_gpu


@pytest.mark.parametrize(
    ("arch", "dtype", "megahertz", "peak"),
    [
        ("sm_90", "float16", 1755, 949e12),
        ("sm_80", "bfloat16", 1410, 312e12),
        ("sm_80", "int8", 1410, 624e12),
        ("sm_70", "float16", 1530, 125e12),
        ("sm_60", "float32", 1480, 10.6e12),
        ("sm_60", "float16", 1480, 21.2e12),
    ],
)
def test_peaks(arch: str, dtype: str, megahertz: int, peak: float) -> None:
    """As their makers state them, within two per cent."""
    gpu = describe_gpu(f"cuda -arch={arch}")
    rate = gpu.operations_per_cycle(dtype) * gpu.multiprocessors * megahertz * 1e6
    assert rate == pytest.approx(peak, rel=0.02)


def test_float32_products_are_made_of_three() -> None:
    """On tensor cores where that is faster than on ordinary ones."""
    assert describe_gpu("cuda -arch=sm_90").operations_per_cycle("float32") == 4096 // 2 // 3
    assert describe_gpu("cuda -arch=sm_75").operations_per_cycle("float32") == 128
