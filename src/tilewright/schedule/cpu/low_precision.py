"""int8 and bfloat16 products on CPUs: which types and targets use dot-product instructions, and the blocked layouts of
their channels.

Dot-product instructions multiply packed lanes: 32-bit lanes of four int8 or two bfloat16 numbers each. Results are
32 bits wide too, so a vector of results has as many lanes as a vector of packed lanes.
"""

from __future__ import annotations

from tilewright.schedule.cpu.layouts import WORTH_BLOCKING, Conv2DLayouts
from tilewright.schedule.cpu.loops import vector_fill
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.matrix_unit import has_matrix_unit
from tilewright.support.dtype import DataType
from tilewright.target.cpu import CPUDescription
from tilewright.target.target import Target
from tilewright.tir.packed_lanes import can_multiply, numbers_per_lane, sum_type


def multiplies_packed_lanes(cpu: CPUDescription, data: DataType | str, weight: DataType | str) -> bool:
    """True if the CPU has dot-product instructions, or an equally fast sequence, for packed lanes of these types."""
    target = Target.current()
    if not can_multiply(data, weight) or (target is not None and target.kind.name != "llvm"):
        return False
    if DataType(data).is_float:
        return cpu.has_fma and cpu.family in ("x86", "aarch64")
    if cpu.family == "aarch64":
        return ("dotprod" if str(data) == "int8" else "i8mm") in cpu.features
    if cpu.family != "x86":
        return False
    return "avxvnniint8" in cpu.features if str(data) == "int8" else "avx2" in cpu.features


def widened_weight(cpu: CPUDescription, data: DataType | str, weight: DataType | str) -> str | None:
    """The type that constant 8-bit weights are widened to when they are packed, with the data widened by the kernel;
    None to leave them.

    x86 without VNNI multiplies pairs of int16 exactly: widened beforehand, a step is a multiplication and an addition,
    and all registers are left for sums.
    """
    types = (str(data), str(weight))
    if types not in (("int8", "int8"), ("uint8", "int8")) or not multiplies_packed_lanes(
        cpu, "uint8", "int8"
    ):
        return None
    has_dot_product = cpu.family != "x86" or cpu.features & {
        "avx512vnni",
        "avxvnni",
        "avxvnniint8",
        "amx-int8",
    }
    return None if has_dot_product else "int16"


def wanted_data_type(cpu: CPUDescription, data: DataType | str, weight: DataType | str) -> str | None:
    """The type that data should be shifted to by an offset of 128, so that dot-product instructions apply; None if they
    apply already, or not at all."""
    types = (str(data), str(weight))
    if types not in (("int8", "int8"), ("uint8", "int8")) or multiplies_packed_lanes(cpu, *types):
        return None
    other = "uint8" if types[0] == "int8" else "int8"
    return other if multiplies_packed_lanes(cpu, other, "int8") else None


def uses_packed_lanes(data: DataType | str, weight: DataType | str, out_dtype: DataType | str | None) -> bool:
    """True if a product of these types is computed in packed lanes on the current target."""
    cpu = current_cpu()
    is_widened = str(weight) == "int16" and widened_weight(cpu, data, "int8") is not None
    if not is_widened and not multiplies_packed_lanes(cpu, data, weight):
        return False
    wanted = (sum_type(data), str(data)) if DataType(data).is_float else (sum_type(data),)
    return str(out_dtype or data) in wanted


def low_precision_block(channels: int, dtype: DataType | str) -> int:
    """The number of channels per block: those of a register tile, or the divisor that fills vectors best.

    A tile has two vectors of results. A larger block would be read in parts that are not contiguous, and the kernel
    would copy its weights at each run. A matrix unit reads packed lanes for a whole vector, and so do instructions that
    multiply by one word of a vector register.
    """
    cpu = current_cpu()
    numbers, lanes = numbers_per_lane(dtype), lanes_of(cpu, "int32")
    preferred = [numbers * lanes if has_matrix_unit(cpu, dtype) else 2 * lanes]
    if cpu.multiplies_by_element:
        preferred.insert(0, numbers * lanes)
    for size in preferred:
        if channels % size == 0:
            return size
    step = numbers if channels % numbers == 0 else 1
    divisors = [size for size in range(step, min(channels, 4 * lanes) + 1, step) if channels % size == 0]
    return max(divisors, key=lambda size: (vector_fill(size, lanes), -size))


def low_precision_conv2d_layouts(
    in_channels: int, out_channels: int, groups: int, dtype: DataType | str
) -> Conv2DLayouts | None:
    """The layouts of a convolution in packed lanes: the weight has a seventh axis, of the numbers in a lane. None if
    the input channels do not fill whole lanes, or vectors of output channels would be mostly empty."""
    numbers, lanes = numbers_per_lane(dtype), lanes_of(current_cpu(), "int32")
    if in_channels // groups % numbers:
        return None
    inputs, outputs = (low_precision_block(count // groups, dtype) for count in (in_channels, out_channels))
    if vector_fill(outputs, lanes) < WORTH_BLOCKING:
        return None
    kernel = f"OIHW{inputs // numbers}i{outputs}o{numbers}i"
    return Conv2DLayouts(inputs, outputs, f"NCHW{inputs}c", kernel, f"NCHW{outputs}c")
