"""Passes, contexts and sequences of passes."""

import threading
from dataclasses import dataclass

import pytest

from tilewright.ir.expr import Var
from tilewright.ir.module import IRModule
from tilewright.ir.pass_config import PassConfigError
from tilewright.ir.transform import (
    ModulePass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    find_pass,
    module_pass,
)
from tilewright.support.errors import TilewrightError, VerifyError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Evaluate
from tilewright.tir.transform.function_pass import PrimFuncPass, prim_func_pass


@dataclass(frozen=True)
class Mark(PrimFuncPass):
    """Counts in an attribute how often it ran."""

    key: str = "count"
    name = "test.Mark"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_attr(self.key, function.attrs.get(self.key, 0) + 1)


@dataclass(frozen=True)
class Costly(PrimFuncPass):
    """Runs from level three, after Mark."""

    name = "test.Costly"
    opt_level = 3
    required = ("test.Mark",)

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_attr("costly", True)


@pytest.fixture
def module() -> IRModule:
    """A module of two functions."""
    return IRModule({name: PrimFunc([Var("x")], Evaluate(0)) for name in ("f", "g")})


def counts(module: IRModule) -> list[int]:
    return [function.attrs.get("count", 0) for function in module.functions.values()]


def test_function_pass_runs_on_every_function(module: IRModule) -> None:
    """The pass gives a new module and leaves the given one as it was."""
    made = Mark()(module)
    assert counts(made) == [1, 1] and counts(module) == [0, 0]
    assert Mark("other")(module)["f"].attrs["other"] == 1
    assert Mark().info == PassInfo(0, "test.Mark")


def test_passes_are_values() -> None:
    """A pass is a frozen dataclass: equal by its options."""
    assert Mark("a") == Mark("a") and Mark("a") != Mark("b")
    with pytest.raises(AttributeError):
        Mark().key = "b"  # type: ignore[misc]


def test_unchanged_module_is_the_same(module: IRModule) -> None:
    """A pass that changes nothing gives the very module back."""
    assert prim_func_pass(lambda function, *_: function, opt_level=0)(module) is module


def test_function_can_be_dropped(module: IRModule) -> None:
    """None in place of a function takes it out of the module."""
    kept = module["g"]

    @prim_func_pass(opt_level=0)
    def drop(function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc | None:
        return function if function is kept else None

    assert [variable.name_hint for variable in drop(module).get_global_vars()] == ["g"]
    assert drop.info.name == "drop"


def test_pass_on_something_else(module: IRModule) -> None:
    """A pass runs on modules alone, and must give what it promises."""
    with pytest.raises(TypeError, match="runs on an IRModule"):
        Mark()(module["f"])
    with pytest.raises(TilewrightError, match="gave int instead of a function for f"):
        prim_func_pass(lambda *_: 1, opt_level=0)(module)  # type: ignore[arg-type, return-value]
    with pytest.raises(TilewrightError, match="gave NoneType instead of a module"):
        module_pass(lambda *_: None, opt_level=0)(module)  # type: ignore[arg-type, return-value]


def test_sequence_honours_levels(module: IRModule) -> None:
    """A pass of level three runs at level three, or where it is required; never where it is disabled."""
    sequence = Sequential([Mark(), Costly()])
    assert "costly" not in sequence(module)["f"].attrs
    with PassContext(opt_level=3):
        made = sequence(module)
    assert made["f"].attrs["costly"] is True and counts(made) == [2, 2], "Costly required Mark once more"
    with PassContext(opt_level=0, required_pass=["test.Costly"]):
        assert "costly" in sequence(module)["f"].attrs
    with PassContext(opt_level=3, disabled_pass=["test.Costly"]):
        assert "costly" not in sequence(module)["f"].attrs


def test_sequence_checks_its_passes() -> None:
    """A sequence takes a list of passes."""
    with pytest.raises(TypeError, match="it has a function"):
        Sequential([lambda mod: mod])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="list of Pass objects"):
        Sequential(Mark())  # type: ignore[arg-type]
    info = Sequential([Mark()], opt_level=2, name="both", required=["test.Mark"]).info
    assert (info.opt_level, info.name, info.required) == (2, "both", ("test.Mark",))


def test_sequences_nest(module: IRModule) -> None:
    """A sequence is a pass."""
    assert counts(Sequential([Sequential([Mark(), Mark()]), Mark()])(module)) == [3, 3]


def test_passes_are_found_by_name() -> None:
    """A pass class is known by its name, with or without the level."""
    assert find_pass("test.Mark") == Mark() and find_pass("Costly") == Costly()
    with pytest.raises(TilewrightError, match="no pass named"):
        find_pass("test.Nonsense")


def test_module_pass_decorators(module: IRModule) -> None:
    """Functions and classes become passes; a class keeps its attributes."""

    @module_pass(opt_level=1, name="rename")
    def renamed(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule(
            {f"new_{variable.name_hint}": function for variable, function in mod.functions.items()}
        )

    assert "new_f" in renamed(module) and renamed.info.name == "rename"

    @module_pass(opt_level=2)
    class Keep:
        """Keeps one function."""

        def __init__(self, kept: str) -> None:
            self.kept = kept

        def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
            return IRModule({self.kept: mod[self.kept]})

    keep = Keep("g")
    assert isinstance(keep, ModulePass) and keep.kept == "g" and keep.info.opt_level == 2
    assert list(keep(module).functions.values()) == [module["g"]]

    @prim_func_pass(opt_level=1)
    class Tag:
        def transform_function(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
            return function.with_attr("tag", 1)

    assert Tag()(module)["f"].attrs["tag"] == 1


def test_decorators_check_their_arguments() -> None:
    """The level is needed, the decorated thing must be callable, a class needs its method."""
    with pytest.raises(ValueError, match="needs opt_level"):
        module_pass(lambda mod, ctx: mod)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="for functions and classes"):
        module_pass(opt_level=1)(3)
    with pytest.raises(TypeError, match="needs a method transform_module"):
        module_pass(opt_level=1)(type("Empty", (), {}))
    with pytest.raises(TypeError, match="list of pass names"):
        module_pass(opt_level=1, required="abc")
    with pytest.raises(ValueError, match="prim_func_pass needs opt_level"):
        prim_func_pass()


def test_contexts_nest_and_end() -> None:
    """The innermost context is current; leaving it gives the one around it."""
    default = PassContext.current()
    assert default.opt_level == 2
    with PassContext(opt_level=1) as outer:
        assert PassContext.current() is outer
        with PassContext(opt_level=3) as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current() is default


def test_an_error_leaves_the_context() -> None:
    """An error inside a context ends it."""
    default = PassContext.current()
    with pytest.raises(KeyError), PassContext(opt_level=3):
        raise KeyError
    assert PassContext.current() is default


def test_contexts_belong_to_threads() -> None:
    """A context entered in one thread is not seen in another."""
    found: list[int] = []
    with PassContext(opt_level=3):
        thread = threading.Thread(target=lambda: found.append(PassContext.current().opt_level))
        thread.start()
        thread.join()
    assert found == [2]


def test_context_checks_its_arguments() -> None:
    """Lists are lists, and options are known."""
    with pytest.raises(TypeError, match="required_pass is a list"):
        PassContext(required_pass="Mark")
    with pytest.raises(PassConfigError, match="not an option"):
        PassContext(config={"tir.Nonsense": 1})


def test_config_is_read_with_defaults() -> None:
    """A context gives what it sets, and the default otherwise."""
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}, "tir.noalias": False}) as context:
        assert context.get("tir.UnrollLoop").auto_max_step == 16
        assert context.get("tir.UnrollLoop").explicit_unroll is True
        assert context.get("tir.noalias") is False and context.get("tir.disable_vectorize") is False
        assert "tir.disable_vectorize" not in context.config
    assert PassContext.list_configs()["tir.noalias"] == {"type": "IntImm"}


def test_print_ir(module: IRModule, capsys: pytest.CaptureFixture[str]) -> None:
    """The module is written with its header and given back."""
    assert PrintIR("before")(module) is module
    written = capsys.readouterr().err
    assert written.startswith("PrintIR(before):\n") and "def f" in written
    PrintIR()(module)
    assert capsys.readouterr().err.startswith("PrintIR():\n")


class Uncounted(PrimFunc):
    """A function of a level whose only rule is that nobody counts."""

    __slots__ = ()

    def verify(self, module: IRModule) -> None:
        if self.attrs.get("count", 0) and module["f"] is self:
            raise VerifyError("the function was counted")


def test_functions_verify_themselves_after_every_pass() -> None:
    """What a pass breaks is found right after it, by the rules of the function's own level; the error names both."""
    module = IRModule({"f": Uncounted([Var("x")], Evaluate(0))})
    with pytest.raises(VerifyError, match=r"after pass test\.Mark: function f: the function was counted"):
        Sequential([Mark()])(module)
