"""What a device's driver is asked for: attributes, streams, events, code, memory; and what nobody may do."""

from __future__ import annotations

import ctypes
import signal
import struct
import subprocess
import sys
from ctypes import c_int64
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.device.guarded import Code, counts, guarded, set_memory
from tests.threads import in_threads

from tilewright.runtime import Device, convert_to_tvm_func, cpu, load_module
from tilewright.runtime import ndarray as nd
from tilewright.runtime.benchmark import time_evaluator
from tilewright.runtime.failure import take_failure
from tilewright.runtime.library import LIBRARY
from tilewright.support.cbuild import SOURCES, find_compiler, link_shared
from tilewright.support.errors import TilewrightError


def test_attributes(device: Device) -> None:
    """They are the driver's; what it does not know is None."""
    assert device.exist and guarded(1).exist and not Device(12, 2).exist and not Device(12, -1).exist
    assert device.device_name == "guarded host memory 0"
    assert (device.max_threads_per_block, device.warp_size, device.multi_processor_count) == (256, 1, 1)
    assert device.max_shared_memory_per_block == 1 << 16
    assert (device.compute_version, device.max_thread_dimensions) == ("1.0", [256, 16, 4])
    assert (device.max_clock_rate, device.api_version, device.driver_version) == (None, None, None)
    free = device.available_global_memory
    array = nd.empty((1 << 20,), "int8", device)
    assert device.available_global_memory == (free or 0) - (1 << 20)
    assert device.total_global_memory == 256 << 20
    assert array.device.host_readable is False and cpu().host_readable
    processor = cpu()
    assert processor.device_name == "cpu(0)"
    total, available = processor.total_global_memory, processor.available_global_memory
    assert total is not None and available is not None and 0 < available <= total


def test_streams(device: Device, code: Code) -> None:
    """Work waits in the queue until somebody waits for it."""
    stream = device.create_raw_stream()
    assert stream is not None
    device.set_raw_stream(stream)
    array = nd.empty((8,), "int32", device)
    waits = counts(device).waits
    code.launch("fill", array, 3, grid=(2, 1, 1), block=(4, 1, 1), stream=stream)
    assert counts(device).waits == waits
    device.sync(stream)
    assert counts(device).waits == waits + 1
    np.testing.assert_array_equal(array.numpy(), np.arange(3, 11))
    device.set_raw_stream(None)
    device.free_raw_stream(stream)


def test_launches(device: Device, code: Code) -> None:
    """A kernel has its shared memory; what the device cannot launch is the driver's error."""
    array = nd.empty((4,), "int32", device)
    code.launch("use_shared", array, block=(4, 1, 1), shared_bytes=16)
    np.testing.assert_array_equal(array.numpy(), [3, 2, 1, 0])
    with pytest.raises(ValueError, match="the module has no kernel nothing"):
        code.launch("nothing")
    with pytest.raises(ValueError, match="up to 256 threads"):
        code.launch("fill", array, 0, block=(257, 1, 1))
    with pytest.raises(ValueError, match="not a shared object"):
        Code(b"no code", device)


def test_measured_by_events(device: Device, code: Code) -> None:
    """What is measured is the device's time, between two events, and both are given back."""
    array = nd.empty((8,), "int32", device)
    launches = counts(device).launches

    def fill() -> None:
        code.launch("fill", array, 1, block=(8, 1, 1))

    result = time_evaluator(convert_to_tvm_func(fill), number=5, repeat=3, device=device)()
    assert len(result.results) == 3 and result.min > 0
    assert counts(device).launches - launches == 1 + 3 * 5


def test_out_of_memory(device: Device) -> None:
    """The error says what was asked for and what there is; the process goes on."""
    set_memory(device, 1 << 20)
    try:
        kept = nd.array(np.ones(1000, "float32"), device)
        with pytest.raises(
            MemoryError, match=r"guarded\(0\) has no memory for 4000000 bytes: 4096 of 1048576"
        ):
            nd.empty((1_000_000,), "float32", device)
        with pytest.raises(MemoryError, match="no memory"):
            nd.empty((1 << 40, 1 << 30), "float32", device)
        np.testing.assert_array_equal(kept.numpy(), np.ones(1000))
    finally:
        set_memory(device, 0)
    assert nd.array(np.ones(1_000_000, "float32"), device).numpy().sum() == 1_000_000


def test_scratch_memory(device: Device) -> None:
    """Generated code gets scratch memory of the device, and gives it back."""
    in_use = counts(device).in_use
    address = LIBRARY.tilewright_workspace_alloc(12, 0, 10_000)
    assert counts(device).in_use != in_use
    assert LIBRARY.tilewright_workspace_free(12, 0, address) == 0
    assert counts(device).in_use == in_use


def test_many_threads(device: Device, code: Code) -> None:
    """Threads that allocate, copy, launch and free do not disturb each other."""
    failures: list[str] = []

    def work(number: int) -> None:
        for turn in range(30):
            values = np.full(64, number * 1000 + turn, "float32")
            array, result = nd.array(values, device), nd.empty((64,), "float32", device)
            code.launch("add_one", array, result, 64)
            if not np.array_equal(result.copyto(guarded(1)).numpy(), values + 1):
                failures.append(f"{number}/{turn}")

    in_threads(work, range(8))
    assert failures == []


def run_child(body: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with a guarded array ``array`` of 16 ones."""
    head = (
        "import ctypes, sys\nimport numpy as np\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from tests.runtime.device.guarded import guarded\n"
        "from tilewright.runtime import ndarray as nd\n"
        "array = nd.array(np.ones(16, 'float32'), guarded())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", head + body], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    "body",
    [
        "ctypes.string_at(array._dltensor.data, 4)",
        "ctypes.memset(array._dltensor.data, 0, 4)",
        "print(np.ctypeslib.as_array((ctypes.c_float * 16).from_address(array.memory_range().start)).sum())",
        "address = array._dltensor.data\narray.copyto(guarded(1))\ndel array\nctypes.string_at(address, 4)",
    ],
)
def test_nobody_else_reads_the_memory(device: Device, body: str) -> None:
    """Whoever goes around the driver dies."""
    assert run_child(body).returncode == -signal.SIGSEGV


def test_through_the_driver_the_memory_is_read(device: Device) -> None:
    """The same program that asks the driver lives."""
    done = run_child("print(array.numpy().sum())")
    assert (done.returncode, done.stdout) == (0, "16.0\n"), done.stderr


def test_what_a_driver_lacks(device: Device) -> None:
    """Each is an error that names the device and what it has not; a second driver of the kind is refused."""
    done = run_child(
        "from tilewright.runtime import Device\n"
        "from tilewright.runtime.library import LIBRARY, DLDevice\n"
        "class Table(ctypes.Structure):\n"
        "    _fields_ = [('size', ctypes.c_uint32), ('flags', ctypes.c_uint32), ('name', ctypes.c_char_p),\n"
        "                ('count', ctypes.CFUNCTYPE(ctypes.c_int32))]\n"
        "count = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 1)\n"
        "table = Table(ctypes.sizeof(Table), 0, b'bare', count)\n"
        "assert LIBRARY.tilewright_device_register(20, ctypes.byref(table)) == 0\n"
        "bare = Device(20)\n"
        "assert bare.exist and bare.warp_size is None and not bare.host_readable\n"
        "def said(action):\n"
        "    try:\n"
        "        action()\n"
        "    except NotImplementedError as error:\n"
        "        print(error)\n"
        "said(lambda: nd.empty((1,), 'float32', bare))\n"
        "said(bare.sync)\n"
        "said(bare.create_raw_stream)\n"
        "for number in (20, 12, 1):\n"
        "    assert LIBRARY.tilewright_device_register(number, ctypes.byref(table)) == -1\n"
        "    print(LIBRARY.tilewright_error_message().decode())\n"
        "for number in (-1, 128):\n"
        "    assert LIBRARY.tilewright_device_register(number, ctypes.byref(table)) == -1\n"
        "table.size = 0\n"
        "assert LIBRARY.tilewright_device_register(21, ctypes.byref(table)) == -1\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the driver of bare(0) has no memory",
        "the driver of bare(0) has no way to wait for it",
        "the driver of bare(0) has no streams",
        "device type 20 has a driver already: bare",
        "device type 12 has a driver already: guarded",
        "device type 1 has a driver already: cpu",
    ]


def test_no_driver_is_one_clear_error() -> None:
    """Whatever is asked of a device without a driver, the error says which device, and why it cannot be used."""
    message = r"vulkan\(1\) cannot be used: this runtime has no driver for devices of the kind vulkan"
    device = Device(7, 1)
    for action in (
        device.sync,
        device.create_raw_stream,
        lambda: nd.empty((1,), "float32", device),
        lambda: nd.array(np.zeros(1)).copyto(device),
    ):
        with pytest.raises(TilewrightError, match=message):
            action()
    assert not device.exist and device.warp_size is None and device.device_name == "vulkan(1)"


ARTEFACT = """
#include "tilewright.h"
__attribute__((visibility("default"))) int32_t __tvm_ffi_round_trip(void* self, const TVMFFIAny* args, int32_t count,
                                                                     TVMFFIAny* result) {
  (void)self, (void)count;
  DLDevice host = {1, 0}, device = {12, 0};
  int64_t value = args[0].v_int64, back = 0;
  void* memory;
  if (tilewright_device_alloc(device, 8, 64, (DLDataType){0, 64, 1}, &memory) != 0) return -1;
  int32_t status = tilewright_device_copy(&value, 0, host, memory, 0, device, 8, 0);
  if (status == 0) status = tilewright_device_copy(memory, 0, device, &back, 0, host, 8, 0);
  if (tilewright_device_free(device, memory) != 0 || status != 0) return -1;
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = back};
  return 0;
}
"""


def test_artefacts_share_the_devices_of_their_loader(device: Device, tmp_path: Path) -> None:
    """A library with a runtime of its own finds the drivers of the runtime that loads it."""
    library = build_artefact(tmp_path)
    copies = counts(device).copies
    assert load_module(str(library))["round_trip"](1234567) == 1234567
    assert counts(device).copies - copies == 2


def build_artefact(tmp_path: Path) -> Path:
    """The function above in a library with the runtime inside."""
    source, code, library = tmp_path / "made.c", tmp_path / "made.o", tmp_path / "made.so"
    source.write_text(ARTEFACT)
    flags = ["-O2", "-fPIC", "-fvisibility=hidden", "-DTILEWRIGHT_EMBEDDED", "-I", SOURCES]
    find_compiler().run([*flags, "-c", source, "-o", code])
    link_shared(library, [code])
    return library


def test_artefacts_of_older_loaders(device: Device, tmp_path: Path) -> None:
    """A loader from before there were devices shares what it has, and the artefact has its own devices; one whose table
    means something else is refused."""
    library = ctypes.CDLL(str(build_artefact(tmp_path)))
    head = struct.Struct("<II")
    whole = ctypes.string_at(LIBRARY.tilewright_host(), 88)
    size, version = head.unpack_from(whole)
    assert size == 88
    offers = [(88, version + 1), (40, version), (48, version)]
    tables = [ctypes.create_string_buffer(head.pack(*offer) + whole[8:]) for offer in offers]
    assert [library["__tilewright_bind_host"](table) for table in tables] == [-1, -1, 0]
    argument, result = (c_int64 * 2)(1, 7), (c_int64 * 2)()
    assert library["__tvm_ffi_round_trip"](None, argument, 1, result) == -1
    with pytest.raises(TilewrightError, match=r"ext_dev\(0\) cannot be used: this runtime has no driver"):
        raise take_failure()  # it came to the loader
