"""Devices: kinds by name and number, and whether this process can use them."""

import re

import pytest

from tilewright.runtime import (
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from tilewright.support.cbuild import SOURCES
from tilewright.support.errors import TilewrightError


def test_kinds_have_dlpack_numbers() -> None:
    """Each constructor gives the number that DLPack has for its kind."""
    made = [cpu(), cuda(), gpu(), opencl(), vulkan(), metal(), vpi(), rocm(), ext_dev(), webgpu(), hexagon()]
    assert [each.device_type for each in made] == [1, 2, 2, 4, 7, 8, 9, 10, 12, 15, 16]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cpu", cpu(3)), ("llvm", cpu(3)), ("llvm -mcpu=skylake", cpu(3)), ("cuda", cuda(3)), ("cl", opencl(3))],
)
def test_device_from_name(name: str, expected: object) -> None:
    """A device is made from a kind's name, or from the start of a target."""
    assert device(name, 3) == expected


def test_device_from_number() -> None:
    """A number is taken as it is."""
    assert device(2, 1) == cuda(1)
    assert cuda(1) != cuda(0)
    assert len({cpu(0), device("cpu"), cuda(0)}) == 2


def test_unknown_kind_names_the_known_ones() -> None:
    """An unknown kind is an error that lists the kinds there are."""
    with pytest.raises(TilewrightError, match=r"'toaster' is not a kind of device; known are .*cuda"):
        device("toaster")
    with pytest.raises(ValueError, match="not a kind of device"):
        device("")


def test_existence() -> None:
    """The host exists once; kinds without a driver do not exist, and waiting for them is an error."""
    assert cpu(0).exist
    assert not cpu(1).exist
    assert not metal(0).exist
    assert not cuda(1000).exist
    cpu(0).sync()
    with pytest.raises(
        TilewrightError,
        match=r"metal\(0\) cannot be used: this runtime has no driver for devices of the kind metal",
    ):
        metal(0).sync()


def test_names() -> None:
    """A device prints as the call that makes it; a remote one says which session it is of."""
    assert repr(cuda(2)) == "cuda(2)"
    assert repr(device(128 + 1, 0)) == "remote[0]:cpu(0)"


def test_a_processor_has_no_attributes_of_gpus() -> None:
    """What only drivers of GPUs know is None; the only stream of a processor is None too."""
    processor = cpu()
    assert processor.warp_size is None and processor.compute_version is None
    assert processor.max_threads_per_block is None
    stream = processor.create_raw_stream()
    processor.set_raw_stream(stream)
    processor.free_raw_stream(stream)
    with pytest.raises(TilewrightError, match="no driver"):
        opencl().create_raw_stream()


def test_no_file_but_the_devices_own_names_a_device() -> None:
    """The rest asks the table: in C only the table's own file and the host's name a kind, in Python nothing compares
    its number."""
    own = {"tilewright.h", "tilewright.hpp", "device.h", "device.c", "cpu_device.c", "cuda_copy.c"}
    files = [path for path in SOURCES.rglob("*") if path.is_file()]
    named = {path.name for path in files if re.search(r"kDL(CPU|CUDA|Ext)", path.read_text())}
    assert named <= own
    compared = re.compile(r"device_type\s*[!=]=\s*\d|Device\(\d")
    assert [path.name for path in SOURCES.parent.glob("*.py") if compared.search(path.read_text())] == [
        "device.py"
    ]
