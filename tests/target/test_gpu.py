"""What is known about GPUs: by their architecture, and nothing that the target says otherwise."""

from __future__ import annotations

import pytest

from tilewright.support.errors import TargetError
from tilewright.target import Target, cuda_arch, describe_gpu


def test_generations() -> None:
    """What each generation has."""
    turing, ampere, hopper = (describe_gpu(f"cuda -arch={arch}") for arch in ("sm_75", "sm_80", "sm_90a"))
    assert (turing.has_mma, turing.has_async_copy, turing.has_bulk_copy) == (True, False, False)
    assert (ampere.has_mma, ampere.has_async_copy, ampere.has_bulk_copy) == (True, True, False)
    assert hopper.has_bulk_copy and hopper.has_wgmma and hopper.has_float8
    assert not describe_gpu("cuda -arch=sm_90").has_wgmma and not describe_gpu("cuda -arch=sm_100a").has_wgmma


def test_sizes() -> None:
    """Static shared memory is 48 KB; the rest of what a block may have is dynamic."""
    hopper, ada = describe_gpu("cuda -arch=sm_90a"), describe_gpu("cuda -arch=sm_89")
    assert (hopper.static_shared_bytes, hopper.shared_bytes) == (48 * 1024, 227 * 1024)
    assert ada.shared_bytes == 99 * 1024 and ada.multiprocessor_threads == 1536
    assert hopper.bandwidth > ada.bandwidth and hopper.warp_size == 32


def test_the_target_wins() -> None:
    """Options narrow what a block may have; a name that is near a known one is of the same generation."""
    small = describe_gpu("cuda -arch=sm_80 -shared_memory_per_block=16384 -max_num_threads=256")
    assert (small.shared_bytes, small.block_threads) == (16384, 256)
    assert (
        describe_gpu("cuda -arch=sm_88").multiprocessors == describe_gpu("cuda -arch=sm_87").multiprocessors
    )


@pytest.mark.parametrize(("arch", "words"), [("sm_20", "not a known NVIDIA"), ("gfx90a", "not an NVIDIA")])
def test_unknown(arch: str, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        describe_gpu(f"cuda -arch={arch}")


def test_the_machine_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target without an architecture gets that of the device, in its text; one that names another keeps it."""
    monkeypatch.setattr(cuda_arch, "device_arch", lambda: "sm_90a")
    assert "-arch=sm_90a" in str(Target("cuda"))
    assert (
        Target("cuda -arch=sm_80").attrs["arch"] == "sm_80" and "arch" not in Target("cuda -mcpu=sm_75").attrs
    )
    monkeypatch.setattr(cuda_arch, "device_arch", lambda: "")
    assert "arch" not in Target("cuda").attrs and describe_gpu("cuda").arch == "sm_80"
