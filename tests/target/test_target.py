"""``Target``: how it is made, what it says of itself, and what a wrong description gets."""

import json
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.support.errors import TargetError, TilewrightError
from tilewright.target import Target, create
from tilewright.target.kind import BOOL, INTEGER, KINDS, STRING, STRINGS

ARM_CONFIG = {
    "kind": "llvm",
    "keys": ["arm_cpu", "cpu"],
    "device": "arm_cpu",
    "libs": ["cblas"],
    "system-lib": True,
    "mfloat-abi": "hard",
    "mattr": ["+neon", "-avx512f"],
}


def test_string_gives_kind_attributes_and_keys():
    """The parts of a target string are found under their names, and the kind's keys and defaults are added."""
    target = Target("cuda -model=unknown -libs=cublas,cudnn")
    assert target.kind.name == "cuda"
    assert target.model == "unknown"
    assert target.keys == ("cuda", "gpu")
    assert target.libs == ["cublas", "cudnn"]
    assert target.max_num_threads == 1024
    assert target.thread_warp_size == 32


@pytest.mark.parametrize(
    "text",
    [
        "llvm -mcpu=skylake -mattr=+avx2,+fma",
        "llvm --mcpu=skylake --mattr=+avx2,+fma",
        "llvm -mcpu skylake -mattr +avx2,+fma",
        "  llvm   -mattr='+avx2,+fma'  -mcpu='skylake' ",
    ],
)
def test_spellings_of_one_target_are_equal(text):
    """One dash or two, an equals sign or a space, quotes or none: the target is the same."""
    target = Target(text)
    assert target == Target("llvm -mcpu=skylake -mattr=+avx2,+fma")
    assert hash(target) == hash(Target("llvm -mcpu=skylake -mattr=+avx2,+fma"))
    assert (target.mcpu, target.mattr) == ("skylake", ["+avx2", "+fma"])


def test_text_has_keys_then_attributes_by_name():
    """``str`` gives the canonical form."""
    assert str(Target("llvm")) == "llvm -keys=cpu"
    assert str(Target("llvm -device=arm_cpu -mcpu=x")) == "llvm -keys=arm_cpu,cpu -device=arm_cpu -mcpu=x"


@pytest.mark.parametrize("config", [ARM_CONFIG, json.dumps(ARM_CONFIG)])
def test_dictionary_and_json_describe_the_same(config):
    """A dictionary and its JSON text give every attribute its type."""
    target = Target(config)
    assert target.kind.name == "llvm"
    assert set(ARM_CONFIG["keys"]) <= set(target.keys)
    assert target.device_name == "arm_cpu"
    assert target.libs == ["cblas"]
    assert "system-lib" in str(target)
    assert target.attrs["mfloat-abi"] == "hard"
    assert target.attrs["mattr"] == ["+neon", "-avx512f"]


def test_quoted_value_keeps_its_spaces():
    """A device name with spaces survives reading and printing."""
    target = Target("vulkan -device_name='Name of GPU with spaces' -device_type=discrete")
    assert target.attrs["device_name"] == "Name of GPU with spaces"
    assert target.attrs["device_type"] == "discrete"
    assert Target(str(target)) == target


@pytest.mark.parametrize(("word", "value"), [("True", True), ("false", False), ("1", True), ("0", False)])
def test_bool_words(word, value):
    """A Bool is written true or 1, false or 0."""
    assert Target(f"vulkan --supports_float16={word}").attrs["supports_float16"] is value


def test_bare_flag_is_true():
    """A Bool option without a value is set."""
    assert Target("llvm --system-lib").attrs["system-lib"] is True


def test_host_in_the_string_in_the_dictionary_and_beside():
    """All three ways of giving a host give the same target."""
    expected = Target("cuda", host="llvm -mcpu=skylake")
    assert expected.host == Target("llvm -mcpu=skylake")
    assert Target("cuda --host='llvm -mcpu=skylake'") == expected
    assert Target({"kind": "cuda", "host": {"kind": "llvm", "mcpu": "skylake"}}) == expected
    assert Target("cuda").with_host("llvm -mcpu=skylake") == expected
    assert Target("cuda --host llvm").host == Target("llvm")


def test_host_beside_replaces_host_inside():
    """A host that is given explicitly wins; ``with_host()`` takes it away."""
    target = Target(Target("cuda --host llvm"), "c")
    assert target.host == Target("c")
    assert target.with_host().host is None


def test_composite_holds_targets():
    """A composite target has a list of targets, which print and read back."""
    target = Target("composite --host=llvm --devices=cuda,opencl")
    assert [device.kind.name for device in target.attrs["devices"]] == ["cuda", "opencl"]
    assert target.host == Target("llvm")
    assert Target(str(target)) == target
    assert Target(target.export()) == target


def test_current_is_the_innermost_block():
    """``with`` blocks nest, and leave what they found; without one there is none, or an error."""
    assert Target.current() is None
    with pytest.raises(TargetError, match="no target is set"):
        Target.current(allow_none=False)
    cuda, llvm = Target("cuda"), Target("llvm")
    with cuda:
        with llvm, cuda, llvm as inner:
            assert inner is llvm
            assert Target.current() is llvm
        assert Target.current() is cuda
    assert Target.current() is None


def test_current_is_restored_after_an_error():
    """An exception in the block does not leave its target behind."""
    with pytest.raises(KeyError), Target("llvm"):
        raise KeyError
    assert Target.current() is None


def test_another_thread_has_its_own_current_target():
    """A ``with`` block does not reach other threads."""
    seen = []
    with Target("llvm"):
        thread = threading.Thread(target=lambda: seen.append(Target.current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_target_does_not_change():
    """Attributes can be neither set nor changed in place."""
    target = Target("llvm -mcpu=skylake")
    with pytest.raises(AttributeError, match="never changes"):
        target.tag = "x"
    with pytest.raises(AttributeError, match="never changes"):
        del target.tag
    with pytest.raises(TypeError):
        target.attrs["mcpu"] = "znver4"


def test_pickle_and_create_give_an_equal_target():
    """Copies of every sort are equal to the original."""
    target = Target("cuda -arch=sm_80", host="llvm")
    assert pickle.loads(pickle.dumps(target)) == target
    assert create(str(target)) == target
    assert target != Target("cuda -arch=sm_80")
    assert target != str(target)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("llvmm", "did you mean 'llvm'"),
        ("llvm -mcp=skylake", "did you mean 'mcpu'"),
        ("llvm skylake", "'skylake' is not an option"),
        ("llvm -mcpu", "needs a value"),
        ("llvm -mcpu='sky", "cannot be read"),
        ("llvm -opt-level=high", "must be Integer"),
        ("llvm -system-lib=maybe", "must be Bool"),
        ("", "is empty"),
        ("nvidia/geforce-rtx-309", "did you mean 'nvidia/geforce-rtx-3090'"),
        ("{not json", "not valid JSON"),
        ("[1]", "not a kind of target"),
        ({"mcpu": "skylake"}, "needs a 'kind' or a 'tag'"),
        ({"kind": 3}, "must be a string"),
        ({"kind": "llvm", 3: 4}, "not the name of an option"),
        ({"kind": "llvm", "libs": {"a": "b"}}, "must be Array<String>"),
        ({"kind": "llvm", "libs": [""]}, "must be Array<String>"),
        ({"kind": "llvm", "opt-level": True}, "must be Integer"),
        ({"tag": ["x"]}, "not a target tag"),
        ("llvm -libs=a\\\\", "ends in a backslash"),
        (12.5, "string or dictionary"),
        (None, "string or dictionary"),
    ],
)
def test_wrong_description_is_refused(description, message):
    """Every wrong description raises ``TargetError``, which is a ``ValueError``, and says what to mend."""
    with pytest.raises(TargetError, match=message.replace("[", r"\[")) as caught:
        Target(description)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TilewrightError)


def test_wrong_host_is_refused():
    """A host must be a target too."""
    with pytest.raises(ValueError, match="target host has to be a string or dictionary"):
        Target("cuda --host llvm", 12.5)


def test_device_without_blocks_has_no_thread_limits():
    """Asking a CPU for its warp size is an error, not a guess."""
    with pytest.raises(TargetError, match="thread_warp_size"):
        _ = Target("llvm").thread_warp_size
    assert Target("llvm").max_function_args == -1
    assert Target("metal").max_function_args == 31


def test_check_and_update_host_consist_for_one_target():
    """The host is put into the target, and given back."""
    target, host = Target.check_and_update_host_consist("cuda", "llvm")
    assert (target, host) == (Target("cuda", "llvm"), Target("llvm"))
    target, host = Target.check_and_update_host_consist(Target("cuda", "llvm"))
    assert host == Target("llvm")
    assert Target.check_and_update_host_consist(None) == (None, None)
    for kind in (TargetError, AssertionError):
        with pytest.raises(kind, match="Target host is not empty when target is empty"):
            Target.check_and_update_host_consist(None, "llvm")


def test_check_and_update_host_consist_for_dictionaries():
    """Targets may be the keys or the values of a dictionary, and all get the host."""
    by_target, host = Target.check_and_update_host_consist(
        {"cuda": "module", Target("llvm"): "other"}, "llvm"
    )
    assert by_target == {Target("cuda", "llvm"): "module", Target("llvm", "llvm"): "other"}
    assert host == Target("llvm")
    by_device, host = Target.check_and_update_host_consist({2: "cuda"}, "c", target_is_dict_key=False)
    assert by_device == {2: Target("cuda", "c")}
    assert host == Target("c")


WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12)
VALUES = {
    BOOL: st.booleans(),
    INTEGER: st.integers(-(2**40), 2**40),
    STRING: WORDS,
    STRINGS: st.lists(WORDS, max_size=3),
}


@st.composite
def configs(draw, depth=1):
    """A valid description: any kind with any of its options, and perhaps a host."""
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    config = {"kind": kind.name}
    typed = [name for name, option in kind.options.items() if option in VALUES]
    for name in draw(st.lists(st.sampled_from(typed), max_size=4, unique=True)):
        config[name] = draw(VALUES[kind.options[name]])
    if depth and draw(st.booleans()):
        config["host"] = draw(configs(depth=depth - 1))
    if kind.name == "composite":
        config["devices"] = draw(st.lists(configs(depth=0), max_size=2))
    return config


@given(configs())
def test_every_target_reads_back_from_its_text_and_its_export(config):
    """``str``, ``export`` and JSON lose nothing, whatever characters the values have."""
    target = Target(config)
    assert Target(str(target)) == target
    assert str(Target(str(target))) == str(target)
    assert Target(target.export()) == target
    assert Target(json.dumps(target.export())) == target
    assert Target(str(target)).attrs == target.attrs


@given(st.text(max_size=40))
def test_any_text_gives_a_target_or_a_target_error(text):
    """No string makes the reader fail in any other way."""
    try:
        target = Target("llvm " + text)
    except TargetError:
        return
    assert Target(str(target)) == target
