"""Lookups in tables of 256 bytes on several kinds of processors."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.target.cpu import describe_cpu
from tilewright.tir.byte_table import lookup_byte

TABLE = np.random.default_rng(3).integers(0, 256, 256, dtype="uint8")
CPUS = {
    "x86-64": None,
    "nehalem": "pshufb",
    "core-avx2": "vpshufb",
    "skylake-avx512": "vpshufb",
    "icelake-server": "2b",
}
"""Kinds of processors, and the instruction that looks up."""


AARCH64 = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"


def _kernel(target: str, lanes: int) -> tvm.runtime.Module:
    data = te.placeholder((512,), "uint8", name="data")
    result = te.compute((512,), lambda i: lookup_byte(data[i], TABLE.tobytes().hex()), name="result")
    schedule = te.create_schedule(result.op)
    _, inner = schedule[result].split(result.op.axis[0], factor=lanes)
    if lanes > 1:
        schedule[result].vectorize(inner)
    return tvm.build(schedule, [data, result], target=target)


@pytest.mark.parametrize("lanes", [1, 4, 16, 24, 32, 48, 64, 100])
@pytest.mark.parametrize("cpu", CPUS)
def test_every_index(cpu: str, lanes: int) -> None:
    """All 256 indices, in every place of a register, in vectors that fill registers and that do not."""
    if not describe_cpu(f"llvm -mcpu={cpu}").features <= describe_cpu("llvm").features:
        pytest.skip(f"this machine cannot run code for {cpu}")
    look_up = _kernel(f"llvm -mcpu={cpu}", lanes)
    for start in range(0, 256, 85):
        given = (np.arange(512) * 3 + start).astype("uint8")
        found = tvm.nd.empty((512,), "uint8")
        look_up(tvm.nd.array(given), found)
        np.testing.assert_array_equal(found.numpy(), TABLE[given])


@pytest.mark.parametrize("cpu", CPUS)
def test_the_instruction(cpu: str) -> None:
    """Bytes are shuffled in registers where the processor can do that."""
    assembly = _kernel(f"llvm -mcpu={cpu}", 32).get_source("asm")
    wanted = CPUS[cpu]
    assert wanted in assembly if wanted else "pshufb" not in assembly


def test_aarch64() -> None:
    """A lookup in 64 bytes, and three that leave what was found; numbers are compared on an emulated machine."""
    assembly = _kernel(AARCH64, 16).get_source("asm")
    assert assembly.count("tbl\t") == 1 and assembly.count("tbx\t") == 3
