"""Functions that make targets for families of devices."""

import pytest

from tilewright import target as tgt
from tilewright.support.errors import TargetError
from tilewright.target.constructors import _ARM_MODELS, _MICRO_MODELS, _RISCV_MODELS
from tilewright.target.cpu import describe_cpu


def test_options_are_added():
    """Options are a string or a list of strings, and come after the constructor's own."""
    assert tgt.cuda(options="-libs=cublas,cudnn") == tgt.Target("cuda -model=unknown -libs=cublas,cudnn")
    assert tgt.rocm("vega", ["-libs=miopen", "-mcpu=gfx906"]) == tgt.Target(
        "rocm -model=vega -libs=miopen -mcpu=gfx906"
    )


@pytest.mark.parametrize(
    ("made", "kind", "device"),
    [
        (tgt.mali(), "opencl", "mali"),
        (tgt.bifrost(), "opencl", "bifrost"),
        (tgt.intel_graphics(), "opencl", "intel_graphics"),
        (tgt.arm_cpu(), "llvm", "arm_cpu"),
        (tgt.rasp(), "llvm", "arm_cpu"),
        (tgt.vta(), "ext_dev", "vta"),
    ],
)
def test_device_is_named_and_first_of_the_keys(made, kind, device):
    """The device is an attribute and the most specific key."""
    assert (made.kind.name, made.device_name, made.keys[0]) == (kind, device, device)


@pytest.mark.parametrize("model", sorted(_ARM_MODELS))
def test_every_arm_board_is_described(model):
    """Each known board names a machine with NEON that the compiler can describe."""
    assert describe_cpu(tgt.arm_cpu(model)).vector_bits == 128


@pytest.mark.parametrize("model", sorted(_RISCV_MODELS))
def test_every_riscv_core_is_described(model):
    """Each known core has a RISC-V description and an ABI."""
    made = tgt.riscv_cpu(model)
    assert describe_cpu(made).family == "riscv"
    assert made.attrs["mabi"] in ("ilp32", "lp64d")


@pytest.mark.parametrize("model", sorted(_MICRO_MODELS))
def test_every_microcontroller_is_a_c_target(model):
    """Each known microcontroller is compiled through C."""
    made = tgt.micro(model)
    assert (made.kind.name, made.model) == ("c", model)


def test_unknown_arm_model_is_taken_as_it_is():
    """A board that is not in the table only gives its name."""
    assert str(tgt.arm_cpu("mine")) == "llvm -keys=arm_cpu,cpu -device=arm_cpu -model=mine"


def test_unknown_microcontroller_is_refused():
    """A microcontroller needs compiler flags, so it must be known."""
    with pytest.raises(TargetError, match="did you mean 'nrf52840'"):
        tgt.micro("nrf52841")


def test_hexagon_has_its_vector_unit():
    """The generation and the vector length decide the attributes."""
    made = tgt.hexagon("v68", hvx=128, llvm_options="-unroll-threshold=100")
    assert made.mcpu == "hexagonv68"
    assert made.mattr == ["+hvxv68", "+hvx-length128b"]
    assert made.attrs["llvm-options"] == ["-unroll-threshold=100"]
    assert describe_cpu(made).vector_bits == 1024
    assert describe_cpu(tgt.hexagon("v68", hvx=0)).vector_bits == 32


@pytest.mark.parametrize(
    ("version", "hvx", "message"), [("v99", 128, "not a Hexagon"), ("v66", 32, "not 32")]
)
def test_wrong_hexagon_is_refused(version, hvx, message):
    """A generation or a vector length that does not exist is an error."""
    with pytest.raises(TargetError, match=message):
        tgt.hexagon(version, hvx=hvx)
