"""Options of passes."""

from dataclasses import dataclass

import pytest

from tilewright.ir import operators
from tilewright.ir.pass_config import (
    PassConfigError,
    UnrollLoopConfig,
    config_option,
    list_configs,
    register_config,
)


def test_plain_options() -> None:
    """Values are checked; constants of programs count as their values."""
    option = config_option("tir.noalias")
    assert option.check(False) is False and option.check(1) is True
    assert option.check(operators.const(True)) is True
    with pytest.raises(PassConfigError, match=r"option 'tir\.noalias' expects bool, not 'yes'"):
        option.check("yes")


def test_structured_options() -> None:
    """A dictionary becomes the option's class; its fields are checked too."""
    option = config_option("tir.UnrollLoop")
    assert option.check({"auto_max_step": 8}) == UnrollLoopConfig(auto_max_step=8)
    assert option.check(UnrollLoopConfig()) == option.default
    with pytest.raises(PassConfigError, match="has no field 'max'; it has auto_max_step"):
        option.check({"max": 1})
    with pytest.raises(PassConfigError, match=r"tir\.UnrollLoop\.auto_max_step"):
        option.check({"auto_max_step": "many"})
    with pytest.raises(PassConfigError, match="expects int, not True"):
        option.check({"auto_max_step": True})


def test_unknown_key() -> None:
    """An unknown key is an error that lists the known ones, and an AttributeError to older scripts."""
    with pytest.raises(AttributeError, match=r"the options are .*tir\.UnrollLoop"):
        config_option("tir.unrollloop")


def test_registering() -> None:
    """A key may be registered again with the same type only."""

    @dataclass(frozen=True)
    class Options:
        """Options of a test."""

        size: int = 3

    assert register_config("test.registering", Options).default == Options()
    assert list_configs()["test.registering"] == {"type": "Options"}
    register_config("test.registering", Options)
    with pytest.raises(PassConfigError, match="already known with the type Options"):
        register_config("test.registering", int)


def test_lists_become_tuples() -> None:
    """The passes that users add are kept as a tuple."""
    assert config_option("tir.add_lower_pass").check([(0, None)]) == ((0, None),)
