"""Passes as text, and text as passes."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import relay, tir
from tilewright.ir.module import IRModule
from tilewright.ir.option_types import hints_of, is_data
from tilewright.ir.pass_options import options_of, value_text
from tilewright.ir.pass_text import parse_passes
from tilewright.ir.transform import ModulePass, Pass, PassContext, Sequential, module_pass
from tilewright.support.errors import ParseError
from tilewright.target import Target


@dataclass(frozen=True)
class Options(ModulePass):
    """A pass with options of every kind."""

    count: int = 0
    factor: float = 0.5
    name_of: str = "x"
    flag: bool = False
    sizes: tuple[int, ...] = ()
    table: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    anything: Any = None
    target: Target | None = None
    maybe: int | str | None = None
    function: Callable[[int], int] | None = None

    name = "test.Options"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod


OURS = {
    name: kind
    for name, kind in Pass.registry.items()
    if kind.__module__.startswith("tilewright.") or kind is Options
}


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_pass_is_a_dataclass(name):
    """The fields of a pass are its options; each has a type that can be looked up, and none hides its name."""
    assert dataclasses.is_dataclass(OURS[name])
    assert {"name", "opt_level", "required"}.isdisjoint(option.name for option in options_of(OURS[name]))
    assert all(option.name in hints_of(OURS[name]) for option in options_of(OURS[name]))


LAYOUTS = st.dictionaries(
    st.sampled_from(["nn.conv2d", "nn.conv2d_transpose"]),
    st.lists(st.sampled_from(["NHWC", "NCHW", "default"]), min_size=1, max_size=2),
)
SPECIAL = {
    ("ConvertLayout", "desired_layouts"): LAYOUTS,
    ("PlanDevices", "default_device"): st.sampled_from(["cpu", "cuda", 77]),
    ("ToMixedPrecision", "mixed_precision_type"): st.sampled_from(["float16", "bfloat16"]),
    ("ToMixedPrecision", "missing_op_mode"): st.integers(0, 2),
    ("tir.KeepFunctions", "side"): st.sampled_from(["host", "device"]),
}
"""Options that are checked further than by their types."""


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type that text can give."""
    base, arguments = typing.get_origin(hint), [one for one in typing.get_args(hint) if one is not Ellipsis]
    if base in (typing.Union, types.UnionType):
        return st.one_of([values(one) for one in arguments if is_data(one)])
    if base is tuple:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if base is not None and issubclass(base, Mapping):
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if base is not None and issubclass(base, Sequence):
        return st.lists(values(arguments[0]), max_size=3)
    return {
        int: st.integers(),
        float: st.floats(allow_nan=False),
        str: st.text() | st.sampled_from(["true", "none", "3", "nn.conv2d", "shared.dyn", "a-b", "inf"]),
        bool: st.booleans(),
        type(None): st.none(),
        Target: st.sampled_from([Target("llvm"), Target("llvm -mcpu=skylake"), Target("cuda", "llvm")]),
        Any: st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.floats(allow_nan=False)),
    }[hint]


@st.composite
def passes(draw: st.DrawFn) -> Pass:
    """A registered pass with some of its options set."""
    readable = [kind for kind in OURS.values() if _can_be_read(kind)]
    kind = draw(st.sampled_from(readable))
    chosen: dict[str, Any] = {}
    for option in options_of(kind):
        hint = hints_of(kind)[option.name]
        if is_data(hint) and (_is_needed(option) or draw(st.booleans())):
            chosen[option.name] = draw(SPECIAL.get((kind.name, option.name), values(hint)))
    return kind(**chosen)


def _is_needed(option: dataclasses.Field[Any]) -> bool:
    return option.default is dataclasses.MISSING and option.default_factory is dataclasses.MISSING


def _can_be_read(kind: type[Pass]) -> bool:
    """Not where a function must be given, or the name of a table that this process has not registered."""
    needed = [option.name for option in options_of(kind) if _is_needed(option)]
    return kind.name != "MergeComposite" and all(is_data(hints_of(kind)[name]) for name in needed)


@given(st.lists(passes(), max_size=4))
def test_passes_round_trip(made):
    """What is printed is read as equal passes, which print the same."""
    text = str(Sequential(made))
    read = parse_passes(text)
    assert read == made
    assert str(Sequential(read)) == text


@given(st.text(alphabet='FuseOps{}[]=,:."\\<># \n01-eview', max_size=30))
def test_any_text_is_read_or_refused(text):
    """Whatever is written gives passes or a ParseError."""
    try:
        read = parse_passes(text)
    except ParseError as problem:
        shown = str(problem).splitlines()[-1]
    else:
        shown = "^" if all(isinstance(each, Pass) for each in read) else "no pass"
    assert "^" in shown


def test_text_of_passes():
    """Only options that differ from their defaults are written; sequences are separated by commas."""
    assert str(relay.transform.FuseOps()) == repr(relay.transform.FuseOps()) == "FuseOps"
    assert str(relay.transform.FuseOps(2)) == "FuseOps{fuse_opt_level=2}"
    layouts = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    assert str(layouts) == "ConvertLayout{desired_layouts={nn.conv2d: [NHWC, default]}}"
    assert str(tir.transform.UnrollLoop(auto_max_step=16)) == "tir.UnrollLoop{auto_max_step=16}"
    inner = Sequential([relay.transform.FoldScaleAxis(), tir.transform.Simplify()])
    assert str(Sequential([relay.transform.InferType(), inner])) == "InferType, FoldScaleAxis, tir.Simplify"


def test_what_is_no_data_is_shown():
    """A function is written by its name, a pass made from a function by the pass's."""

    def is_entry(function: Any) -> bool:
        return True

    assert str(tir.transform.Filter(is_entry)) == "tir.Filter{fcond=<function is_entry>}"
    assert value_text(lambda x: x) == "<function lambda>" and value_text(object()) == "<object>"
    assert str(module_pass(lambda mod, ctx: mod, opt_level=0, name="mine")) == "mine"


def test_names_may_leave_out_the_level():
    """With the level, without it, and by the name of the class."""
    (with_level,) = parse_passes("relay.FuseOps")
    assert with_level == relay.transform.FuseOps()
    assert parse_passes("Simplify, tir.Simplify") == [tir.transform.Simplify()] * 2
    assert parse_passes("CombineParallelConv2D{branches=2}") == [relay.transform.CombineParallelConv2D(2)]


def test_comments_lines_and_last_commas():
    """A pipeline may be written over several lines."""
    text = """
        FoldConstant,  # once
        # FuseOps,
        tir.UnrollLoop{auto_max_step=4, explicit_unroll=false,},
    """
    assert parse_passes(text) == [
        relay.transform.FoldConstant(),
        tir.transform.UnrollLoop(auto_max_step=4, explicit_unroll=False),
    ]
    assert parse_passes("") == []


def test_a_name_of_two_passes_needs_its_level(monkeypatch):
    """The error lists both; each prints with what tells it apart."""
    other = type("Simplify", (ModulePass,), {"__doc__": "Another Simplify."})
    monkeypatch.setitem(Pass.registry, "Simplify", dataclass(other))
    other.name = "Simplify"
    with pytest.raises(ParseError, match=r"several passes: write relay\.Simplify or tir\.Simplify"):
        parse_passes("Simplify")
    for name in ("relay.Simplify", "tir.Simplify"):
        assert str(parse_passes(name)[0]) == name


@pytest.mark.parametrize(
    ("text", "message", "pointed"),
    [
        ("FuseOp", "there is no pass 'FuseOp'; did you mean 'FuseOps'?", "FuseOp"),
        ("tir.VectorizeLop", "did you mean 'tir.VectorizeLoop'?", "tir.VectorizeLop"),
        ("xyzzy", "there is no pass 'xyzzy'", "xyzzy"),
        ("FuseOps{levl=2}", "FuseOps has no option 'levl'; did you mean 'fuse_opt_level'?", "levl"),
        ("FuseOps{zzz=2}", "FuseOps has no option 'zzz'; it has fuse_opt_level, views", "zzz"),
        ("FoldScaleAxis{zzz=2}", "FoldScaleAxis has no option 'zzz'; it has none", "zzz"),
        ("tir.UnrollLoop{auto_max=3}", "tir.UnrollLoop has no option 'auto_max'", "auto_max"),
        ("Conv2dToSparse{l=1}", "Conv2dToSparse has no option 'l'", "l"),
        ("FuseOps{level=two}", "fuse_opt_level of FuseOps is an integer, not the string 'two'", "two"),
        ("FuseOps{views=1}", "option views of FuseOps is true or false, not 1", "1"),
        ("FuseOps{level=1, level=2}", "fuse_opt_level of FuseOps is given twice", "level"),
        ("FuseOps{level}", "expected '=' after option fuse_opt_level, found '}'", "}"),
        ("FuseOps{level=}", "expected a value, found '}'", "}"),
        ("FuseOps{level=2", "expected '}' or ',' after an option of FuseOps, found the end", None),
        ("FuseOps FoldConstant", "expected ',' between passes, found 'FoldConstant'", "FoldConstant"),
        ("FuseOps;", "this is not part of a pass", ";"),
        ('Legalize{name="x}', "a string without its closing quote", '"'),
        ('Legalize{name="\\q"}', "an escape that JSON does not know", '"\\q"'),
        ("ThreadSync", "tir.ThreadSync needs its option storage_scope: a string", "ThreadSync"),
        ("tir.Filter", "needs its option fcond: a function, which can be set in Python only", "tir.Filter"),
        ("tir.Filter{fcond=f}", "option fcond of tir.Filter is a function: it can be set in Python", "fcond"),
        ("test.Options{anything=<function f>}", "cannot be read back: set it in Python", "<function f>"),
        ("test.Options{target=lvm}", "is a target in quotes or none: 'lvm' is not a kind of target", "lvm"),
        (
            "test.Options{sizes=[1, x]}",
            "sizes of test.Options is a list of integers, not the string 'x'",
            "[",
        ),
        ("test.Options{table={a: 3}}", "is a map from strings to lists of numbers, not 3", "{"),
        ("test.Options{table={[]: 3}}", "the key of a map is a word, a string or a number", "["),
        ("test.Options{anything=" + "[" * 60, "nested more than 50 deep", "["),
        ("KeepFunctions{side=gpu}", "keeps the side 'host' or 'device', not 'gpu'", "KeepFunctions"),
        ("MergeComposite{table=nobody}", "no pattern table is registered under the name 'nobody'", None),
        ("MergeComposite{table=[[a, b]]}", "pattern_table of MergeComposite is a string, not a list", "["),
    ],
)
def test_errors_point_at_their_place(text, message, pointed):
    """The message says what is wrong and what was probably meant; a caret stands below the place."""
    with pytest.raises(ParseError) as raised:
        parse_passes(f"InferType,\n{text}")
    first, line, carets = str(raised.value).split("\n")
    assert message in first
    assert line == f"  {text}"
    if pointed is not None:
        assert text[carets.index("^") - 2 :].startswith(pointed) and carets.count("^") == len(pointed)
