"""Target tags."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.support.errors import TargetError
from tilewright.target import Target, list_tags, register_tag
from tilewright.target.tag_table import TAGS


@pytest.fixture
def own_tags():
    """Tags that a test registers are taken away again."""
    before = dict(TAGS)
    yield
    TAGS.clear()
    TAGS.update(before)


def test_gpu_tag_gives_its_limits():
    """A GPU's tag brings its compute capability and per-block limits."""
    target = Target("nvidia/geforce-rtx-2080-ti")
    assert target.kind.name == "cuda"
    assert target.attrs["arch"] == "sm_75"
    assert target.attrs["shared_memory_per_block"] == 49152
    assert target.attrs["max_threads_per_block"] == 1024
    assert target.attrs["registers_per_block"] == 65536
    assert target.thread_warp_size == 32
    assert target.tag == "nvidia/geforce-rtx-2080-ti"


def test_small_gpu_has_fewer_registers():
    """The Jetson Nano has half the registers."""
    assert Target("nvidia/jetson-nano").attrs["registers_per_block"] == 32768


def test_tag_takes_more_options_and_hosts():
    """Options after a tag change the description; a tag may be a host."""
    target = Target("nvidia/nvidia-a100 -libs=cudnn", host="raspberry-pi/4b-aarch64")
    assert target.libs == ["cudnn"]
    assert target.attrs["arch"] == "sm_80"
    assert target.host is not None
    assert target.host.mcpu == "cortex-a72"
    assert target.host.device_name == "arm_cpu"
    assert Target({"tag": "nvidia/nvidia-a100", "libs": ["cudnn"]}, "raspberry-pi/4b-aarch64") == target


def test_every_tag_makes_a_target_that_reads_back():
    """All tags are valid, and there are at least 150 of them."""
    tags = list_tags()
    assert len(tags) >= 150
    for name, target in tags.items():
        assert target.tag == name
        assert Target(str(target)) == target


@pytest.mark.usefixtures("own_tags")
def test_registered_tag_can_be_used_and_replaced():
    """A new tag works at once; a taken name needs ``override``; a bad description changes nothing."""
    made = register_tag("lab/board", {"kind": "llvm", "mcpu": "cortex-a53", "libs": ["cblas"]})
    assert Target("lab/board") == made
    assert made.mcpu == "cortex-a53"
    with pytest.raises(TargetError, match="already registered"):
        register_tag("lab/board", {"kind": "c"})
    with pytest.raises(TargetError, match="did you mean 'mcpu'"):
        register_tag("lab/board", {"kind": "llvm", "mcpuu": "x"}, override=True)
    assert Target("lab/board") == made
    assert register_tag("lab/board", {"kind": "c"}, override=True).kind.name == "c"


@pytest.mark.parametrize("name", ["", "two words", "-dash", "{brace"])
def test_name_that_cannot_start_a_target_string_is_refused(name):
    """A tag must be one plain word."""
    with pytest.raises(TargetError, match="cannot be a target tag"):
        register_tag(name, {"kind": "llvm"})


@pytest.mark.parametrize(
    "name",
    [
        "raspberry-pi/4b-aarch64",
        "nvidia/tesla-c2075",
        "nvidia/geforce-gt-730-ddr3,128bit",
        "nvidia/geforce-gtx-860m-sm-50",
        "nvidia/quadro-k2000d",
        "nvidia/nvs-4200m",
        "nvidia/nvidia-nvs-810",
        "nvidia/tegra-x1",
        "nvidia/rtx-3000",
        "nvidia/nvidia-a10g",
        "nvidia/jetson-agx-xavier",
        "aws/cpu/c5.9xlarge",
    ],
)
def test_names_of_tvm(name):
    """One of each series that TVM has tags for."""
    assert Target(name).tag == name


@pytest.mark.slow
def test_a_network_compiles_for_every_cpu():
    """Each processor that a tag names takes a convolution and a dense layer."""
    x = relay.var("x", shape=(1, 8, 6, 6))
    body = relay.nn.conv2d(x, relay.const(np.ones((8, 8, 3, 3), "float32")), padding=(1, 1))
    body = relay.nn.dense(
        relay.nn.batch_flatten(relay.nn.relu(body)), relay.const(np.ones((4, 288), "float32"))
    )
    module = tvm.IRModule.from_expr(relay.Function([x], body))
    processors = {
        (target.mcpu, str(target.attrs["mtriple"]))
        for target in list_tags().values()
        if target.kind.name == "llvm"
    }
    assert len(processors) > 30
    for cpu, triple in sorted(processors):
        relay.build(module, f"llvm -mcpu={cpu} -mtriple={triple}")
