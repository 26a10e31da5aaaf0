"""The kinds of target and their options."""

import pytest

from tilewright.support.errors import TargetError
from tilewright.target import Target, TargetKind
from tilewright.target.kind import get_kind

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
    """The seventeen kinds are listed, and each makes a target."""
    assert Target.list_kinds() == ALL_KINDS
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
    """The longest list is complete: thirty of its own and the common ones."""
    assert len(get_kind("vulkan").own_options) == 30


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
