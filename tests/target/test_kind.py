"""The kinds of target and their options."""

import pytest

from tilewright.runtime import Device, device, ext_dev
from tilewright.support.errors import TargetError
from tilewright.target import Target, TargetKind
from tilewright.target.kind import get_kind, register_kind

ALL_KINDS = [
    *(
        "llvm",
        "c",
        "cuda",
        "nvptx",
        "rocm",
        "opencl",
        "metal",
        "vulkan",
        "webgpu",
        "sdaccel",
        "aocl",
        "aocl_sw_emu",
    ),
    *("hexagon", "stackvm", "ext_dev", "hybrid", "composite"),
]


def test_all_kinds_are_there():
    """The seventeen kinds are listed before those that somebody registered, and each makes a target."""
    assert Target.list_kinds()[: len(ALL_KINDS)] == ALL_KINDS
    for name in Target.list_kinds():
        assert Target(name).kind is get_kind(name)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (
            "llvm",
            {"mattr": "Array<String>", "mcpu": "String", "fast-math-reassoc": "Bool", "opt-level": "Integer"},
        ),
        ("c", {"workspace-byte-alignment": "Integer", "executor": "String", "unpacked-api": "Bool"}),
        ("cuda", {"arch": "String", "registers_per_block": "Integer", "system-lib": "Bool"}),
        (
            "vulkan",
            {"supports_push_descriptor": "Bool", "driver_name": "String", "max_spirv_version": "Integer"},
        ),
        ("hexagon", {"llvm-options": "Array<String>"}),
        (
            "composite",
            {"devices": "Array<Target>", "keys": "Array<String>", "host": "Target", "model": "String"},
        ),
    ],
)
def test_options_have_types(kind, options):
    """``kind.options`` gives each option's type, common options included."""
    found = Target(kind).kind.options
    assert {name: found[name] for name in options} == options


def test_vulkan_has_every_option_of_the_listing():
    """The longest list is complete: thirty that describe a device, ``from_device``, and the common ones."""
    assert len(get_kind("vulkan").own_options) == 31


def test_device_types_are_those_of_dlpack():
    """A kind says which device its code runs on."""
    assert {
        name: get_kind(name).device_type for name in ("llvm", "cuda", "opencl", "vulkan", "metal", "rocm")
    } == {
        "llvm": 1,
        "cuda": 2,
        "opencl": 4,
        "vulkan": 7,
        "metal": 8,
        "rocm": 10,
    }


def test_unknown_kind_names_the_nearest():
    """A misspelt kind is answered with the right one."""
    with pytest.raises(TargetError, match=r"'opencll' is not a kind of target \(did you mean 'opencl'"):
        get_kind("opencll")


def test_options_cannot_be_changed_through_the_listing():
    """``options`` is a copy."""
    kind = get_kind("llvm")
    kind.options["nonsense"] = "Bool"
    assert isinstance(kind, TargetKind)
    assert "nonsense" not in kind.options


def test_own_kinds():
    """A kind that is registered makes targets, and its name is its device's; a name that is taken is refused."""
    kind = register_kind(
        TargetKind("test_kind_own", 12, ("test_kind_own", "gpu"), {"lanes": "Integer"}, {"lanes": 4})
    )
    made = Target("test_kind_own -lanes=8")
    assert made.kind is kind and made.attrs["lanes"] == 8 and "gpu" in made.keys
    assert device("test_kind_own", 3) == ext_dev(3)
    with pytest.raises(
        TargetError, match="there is a kind of target 'test_kind_own' already, for device type 12"
    ):
        register_kind(TargetKind("test_kind_own", 13, ()))
    with pytest.raises(TargetError, match="there is a kind of target 'llvm' already"):
        register_kind(TargetKind("llvm", 1, ()))
    with pytest.raises(ValueError, match="'gpu' is the name of device type 2, and cannot be that of 12"):
        register_kind(TargetKind("gpu", 12, ()))
    assert "gpu" not in Target.list_kinds()


def test_what_passes_ask_of_a_kind():
    """Memory that the host cannot touch, and shuffles within a warp, are the kind's to say."""
    own = [name for name in ALL_KINDS if get_kind(name).own_memory]
    assert own == [
        "cuda",
        "nvptx",
        "rocm",
        "opencl",
        "metal",
        "vulkan",
        "webgpu",
        "sdaccel",
        "aocl",
        "aocl_sw_emu",
    ]
    assert [name for name in ALL_KINDS if get_kind(name).warp_shuffle] == ["cuda", "rocm"]


def test_device_types_are_those_of_the_runtime() -> None:
    """A kind and the device of its name have one number."""
    for name in ALL_KINDS:
        assert Target(name).kind.device_type == Device.STR2MASK[name]
