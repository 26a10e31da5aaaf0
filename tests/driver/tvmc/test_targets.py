"""Targets as the command line gives them."""

import json

import pytest

from tilewright.driver.tvmc import composite_target, targets
from tilewright.driver.tvmc.errors import TVMCException


@pytest.fixture
def generator():
    """A code generator of the name ``npu`` for the time of a test."""
    composite_target.register_codegen("npu", lambda mod, params, **options: mod)
    yield "npu"
    del composite_target.REGISTERED_CODEGEN["npu"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("llvm", ["llvm"]),
        ("npu --a=1, llvm -mcpu=x", ["npu", "--a=1", ",", "llvm", "-mcpu=x"]),
        ("npu,llvm", ["npu", ",", "llvm"]),
        ("npu --a=1,llvm", ["npu", "--a=1", ",", "llvm"]),
        ("llvm -mattr=+avx2,+fma -keys=cpu,cuda", ["llvm", "-mattr=+avx2,+fma", "-keys=cpu,cuda"]),
        ("npu -a='x, y', llvm", ["npu", "-a='x, y'", ",", "llvm"]),
    ],
)
def test_words(text, tokens):
    """Commas part targets, except within the value of an option."""
    assert targets.tokenize_target(text) == tokens


def test_parts():
    """Each target has its name, its options and its text."""
    parsed = targets.parse_target("npu --a=1 --b --c 'x y', llvm -mcpu=skylake")
    assert [one["name"] for one in parsed] == ["npu", "llvm"]
    assert parsed[0]["opts"] == {"a": "1", "b": "1", "c": "x y"}
    assert parsed[1] == {
        "name": "llvm",
        "opts": {"mcpu": "skylake"},
        "raw": "llvm -mcpu=skylake",
        "is_tvm_target": True,
    }
    assert parsed[0]["is_tvm_target"] is False


def test_targets_from_text_json_and_files(tmp_path):
    """A string, inline JSON and a file with JSON; options by kind win over the string."""
    assert targets.target_from_cli("llvm -mcpu=skylake")[0].mcpu == "skylake"
    text = json.dumps({"kind": "llvm", "mcpu": "haswell"})
    assert targets.is_inline_json(text) and not targets.is_inline_json("llvm")
    assert targets.target_from_cli(text)[0].mcpu == "haswell"
    path = tmp_path / "target.json"
    path.write_text(text)
    assert targets.target_from_cli(str(path), {"llvm": {"num-cores": "3"}})[0].attrs["num-cores"] == 3
    found, rest = targets.target_from_cli("llvm -mcpu=skylake", {"llvm": {"mcpu": "haswell"}, "c": {}})
    assert found.mcpu == "haswell" and rest == []
    found, _ = targets.target_from_cli("cuda, llvm -mcpu=haswell", {"llvm": {"num-cores": "2"}})
    assert found.kind.name == "cuda" and found.host.mcpu == "haswell" and found.host.attrs["num-cores"] == 2


def test_code_generators(generator):
    """A registered one can stand before the target, with options."""
    assert "npu" in composite_target.get_codegen_names()
    assert callable(composite_target.get_codegen_by_target("npu")["pass_pipeline"])
    found, rest = targets.target_from_cli("npu --mode=fast, llvm")
    assert found.kind.name == "llvm"
    assert [(one["name"], one["opts"]) for one in rest] == [("npu", {"mode": "fast"})]
    with pytest.raises(TVMCException, match="needs a target of the compiler"):
        targets.target_from_cli("npu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not name a target"),
        ("nothere, llvm", "no target 'nothere'"),
        ("llvm x", "'x' is not an option"),
        ("llvm, llvm", "named twice"),
        ("cuda, opencl, llvm", "at most a target and its host"),
        ("llvm -num-cores=many", "the target is wrong"),
        ("{broken", "the target is wrong"),
    ],
)
def test_wrong_targets(text, message):
    """Each error says what is wrong."""
    with pytest.raises(TVMCException, match=message):
        targets.target_from_cli(text)


def test_files_that_are_no_targets(tmp_path):
    """A file that is missing, or holds something else."""
    with pytest.raises(TVMCException, match="cannot be read"):
        targets.target_from_cli(str(tmp_path / "none.json"))
    (tmp_path / "text.json").write_text("llvm")
    with pytest.raises(TVMCException, match="is not JSON"):
        targets.target_from_cli(str(tmp_path / "text.json"))
    with pytest.raises(TVMCException, match="composite target nothere is not known"):
        composite_target.get_codegen_by_target("nothere")
