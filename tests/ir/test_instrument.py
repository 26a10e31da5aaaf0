"""Instruments of passes."""

import io
import re

import pytest

from tilewright.ir.expr import Var
from tilewright.ir.instrument import (
    CheckEveryPass,
    DumpIR,
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    PrintChanged,
    pass_instrument,
)
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, PassInfo, Sequential, module_pass
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Evaluate

EVENTS: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    EVENTS.clear()


@pytest.fixture
def module() -> IRModule:
    """A module of one function."""
    return IRModule({"main": PrimFunc([Var("x")], Evaluate(0))})


@module_pass(opt_level=0, name="one")
def one(mod: IRModule, ctx: PassContext) -> IRModule:
    """Does nothing."""
    EVENTS.append("run one")
    return mod


@module_pass(opt_level=0, name="two")
def two(mod: IRModule, ctx: PassContext) -> IRModule:
    """Does nothing."""
    EVENTS.append("run two")
    return mod


class Recorder(PassInstrument):
    """Writes down what happens; fails or refuses where told to."""

    def __init__(self, name: str, fail_at: str = "", refuse: str = "") -> None:
        self.name, self.fail_at, self.refuse = name, fail_at, refuse

    def note(self, event: str) -> None:
        if event == self.fail_at:
            raise RuntimeError(f"{self.name} fails at {event}")
        EVENTS.append(f"{self.name} {event}")

    def enter_pass_ctx(self) -> None:
        self.note("enter")

    def exit_pass_ctx(self) -> None:
        self.note("exit")

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        return info.name != self.refuse

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.note(f"before {info.name}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.note(f"after {info.name}")


def test_order_of_events(module: IRModule) -> None:
    """Instruments see the context begin, each pass begin and end, and the context end, in their own order."""
    with PassContext(instruments=[Recorder("a"), Recorder("b")]):
        one(module)
    assert EVENTS == [
        "a enter",
        "b enter",
        "a before one",
        "b before one",
        "run one",
        "a after one",
        "b after one",
        "a exit",
        "b exit",
    ]


def test_skipping_a_pass(module: IRModule) -> None:
    """One instrument that refuses is enough to skip a pass, unless the pass is required."""
    with PassContext(instruments=[Recorder("a"), Recorder("b", refuse="one")]):
        Sequential([one, two])(module)
    assert "run one" not in EVENTS and "run two" in EVENTS and "a before one" not in EVENTS
    EVENTS.clear()
    with PassContext(instruments=[Recorder("b", refuse="one")], required_pass=["one"]):
        Sequential([one, two])(module)
    assert "run one" in EVENTS and "b before one" in EVENTS


def test_failure_on_entering() -> None:
    """If one instrument fails to begin, those before it end, and the context is not entered."""
    current = PassContext.current()
    context = PassContext(instruments=[Recorder("a"), Recorder("b", fail_at="enter"), Recorder("c")])
    with pytest.raises(RuntimeError, match="b fails at enter"), context:
        pass
    assert EVENTS == ["a enter", "a exit"] and context.instruments == []
    assert PassContext.current() is current


def test_failure_on_leaving() -> None:
    """A failure on leaving ends the context all the same."""
    current = PassContext.current()
    context = PassContext(instruments=[Recorder("a", fail_at="exit"), Recorder("b")])
    with pytest.raises(RuntimeError, match="a fails at exit"), context:
        pass
    assert PassContext.current() is current and context.instruments == []


def test_failure_around_a_pass(module: IRModule) -> None:
    """A failure before a pass stops it; the instruments still end."""
    with (
        pytest.raises(RuntimeError, match="b fails at before one"),
        PassContext(instruments=[Recorder("a"), Recorder("b", fail_at="before one")]),
    ):
        one(module)
    assert EVENTS == ["a enter", "b enter", "a before one", "a exit", "b exit"]


def test_overriding_instruments(module: IRModule) -> None:
    """The old instruments end, the new ones begin, within one context."""
    with PassContext(instruments=[Recorder("a")]) as context:
        context.override_instruments([Recorder("b")])
        one(module)
    assert EVENTS == ["a enter", "a exit", "b enter", "b before one", "run one", "b after one", "b exit"]


def test_decorator(module: IRModule) -> None:
    """A class with some of the methods becomes an instrument; one with none is refused."""

    @pass_instrument
    class OnlyBefore:
        def __init__(self, word: str) -> None:
            self.word = word

        def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
            EVENTS.append(f"{self.word} {info.name}")

    instrument = OnlyBefore("sees")
    assert isinstance(instrument, PassInstrument)
    with PassContext(instruments=[instrument]):
        one(module)
    assert EVENTS == ["sees one", "run one"]
    with pytest.raises(TypeError, match="none of the methods"):
        pass_instrument(type("Empty", (), {}))
    with pytest.raises(TypeError, match="decorates a class"):
        pass_instrument()(3)


def test_timing(module: IRModule) -> None:
    """The times of passes print as a tree, with shares that add up; a new context starts anew."""
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        Sequential([one, Sequential([two], name="inner")])(module)
        rendered = timing.render()
    lines = rendered.splitlines()
    assert [line.split(":")[0] for line in lines] == ["sequential", "\tone", "\tinner", "\t\ttwo"]
    assert all(re.search(r": \d+us \[-?\d+us\] \(\d+\.\d\d%; \d+\.\d\d%\)$", line) for line in lines)
    assert "100.00%" in lines[0]
    with PassContext(instruments=[timing]):
        two(module)
    assert [line.split(":")[0] for line in timing.render().splitlines()] == ["two"]


def test_timing_survives_a_failing_pass(module: IRModule) -> None:
    """A pass that fails does not spoil the times of what follows."""
    timing = PassTimingInstrument()

    @module_pass(opt_level=0, name="fails")
    def fails(mod: IRModule, ctx: PassContext) -> IRModule:
        raise KeyError

    with PassContext(instruments=[timing]):
        with pytest.raises(KeyError):
            Sequential([fails])(module)
        one(module)
        assert [line.strip().split(":")[0] for line in timing.render().splitlines()] == [
            "sequential",
            "fails",
            "one",
        ]


def test_printing(module: IRModule) -> None:
    """Modules are written before or after passes, all or those named."""
    output = io.StringIO()
    with PassContext(instruments=[PrintBeforeAll(["two"], output), PrintAfterAll(output=output)]):
        Sequential([one, two])(module)
    headers = [line for line in output.getvalue().splitlines() if line.startswith("# ")]
    assert [line for line in headers if "one" in line or "two" in line] == [
        "# after one",
        "# before two",
        "# after two",
    ]


def test_printing_by_name(module: IRModule, capsys: pytest.CaptureFixture[str]) -> None:
    """The instrument of the later interface names passes for each side."""
    with PassContext(instruments=[PassPrintingInstrument(["one"], ["two"])]):
        Sequential([one, two])(module)
    written = capsys.readouterr().out
    assert "# before one" in written and "# after two" in written and "# after one" not in written


def test_check_every_pass(module: IRModule) -> None:
    """A user's check sees every module that a pass makes."""
    with PassContext(instruments=[CheckEveryPass(lambda mod, info: EVENTS.append(f"check {info.name}"))]):
        Sequential([one])(module)
    assert EVENTS == ["run one", "check one", "check sequential"]


@module_pass(opt_level=0, name="test.Rename/All")
def rename(mod: IRModule, ctx: PassContext) -> IRModule:
    """Adds an attribute, so that the text changes."""
    return mod.map_functions(lambda _, function: function.with_attr("renamed", 1))


@module_pass(opt_level=0, name="copy")
def copied(mod: IRModule, ctx: PassContext) -> IRModule:
    """Makes another module of the same text."""
    return mod.copy()


@module_pass(opt_level=0, name="fails")
def fails(mod: IRModule, ctx: PassContext) -> IRModule:
    """Raises."""
    raise ValueError("no")


def test_dump_writes_what_changed(module, tmp_path):
    """The input and the module after each pass that changed it are numbered files; names are safe in a path."""
    folder = tmp_path / "made" / "here"
    with PassContext(instruments=[DumpIR(folder)]):
        made = Sequential([one, copied, rename, copied])(module)
    assert sorted(path.name for path in folder.iterdir()) == ["000_input.txt", "001_test.Rename_All.txt"]
    assert (folder / "000_input.txt").read_text() == f"{module}\n"
    assert (folder / "001_test.Rename_All.txt").read_text() == f"{made}\n"


def test_dump_of_several_modules(module, tmp_path):
    """A module that no pass before has made is written as an input of its own, with the numbers going on."""
    other = IRModule({"other": PrimFunc([Var("y")], Evaluate(1))})
    with PassContext(instruments=[DumpIR(tmp_path)]):
        rename(module)
        rename(other)
        with pytest.raises(ValueError, match="no"):
            Sequential([fails])(module)
    names = ["000_input.txt", "001_test.Rename_All.txt", "002_input.txt", "003_test.Rename_All.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "004_input.txt"]
    assert "other" in (tmp_path / names[2]).read_text()


def test_dump_sees_passes_inside_passes(module, tmp_path):
    """What an inner pass makes of a module of its own is written, and then what the outer pass makes."""

    @module_pass(opt_level=0, name="outer")
    def outer(mod: IRModule, ctx: PassContext) -> IRModule:
        rename(IRModule({"inner": PrimFunc([Var("y")], Evaluate(1))}))
        return mod.map_functions(lambda _, function: function.with_attr("outer", 1))

    with PassContext(instruments=[DumpIR(tmp_path)]):
        outer(module)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("000_input.txt", "001_test.Rename_All.txt", "002_outer.txt")
    ]
    assert "inner" in (tmp_path / "001_test.Rename_All.txt").read_text()


def test_print_changed_writes_diffs(module):
    """Only passes that change the text are written, as the lines that they change."""
    output = io.StringIO()
    with PassContext(instruments=[PrintChanged(output)]):
        Sequential([one, rename, copied])(module)
    text = output.getvalue()
    assert text.startswith("# test.Rename/All\n@@") and text.count("@@\n") == 1
    assert [line for line in text.splitlines() if line.startswith("+")] == [
        '+        T.func_attr({"renamed": 1})',
    ]
