"""Passes: what they are, in which context they run, and how several run one after another.

A pass is a dataclass whose fields are its options, with a name, the optimisation level from which it runs
inside a ``Sequential``, and the names of passes that must have run before it. Calling it on a module gives the new
module. Around each call stand the instruments of the current ``PassContext`` and, under ``TILEWRIGHT_CHECK=1``, every
function of the result verifies itself. ``str(pass)`` is text that ``pass_text.parse_passes`` reads back:
``FuseOps{fuse_opt_level=2}``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, overload

from tilewright.ir.module import IRModule
from tilewright.ir.pass_config import config_option, list_configs
from tilewright.ir.pass_options import options_text
from tilewright.support.errors import TilewrightError
from tilewright.support.options import CHECK


@dataclass(frozen=True)
class PassInfo:
    """What the context decides by: the level of a pass, its name, and the names of those it needs."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()

    def __init__(self, opt_level: int, name: str, required: Iterable[str] | None = None) -> None:
        object.__setattr__(self, "opt_level", opt_level)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "required", tuple(required or ()))

    def __str__(self) -> str:
        return (
            f"pass {self.name}: opt_level {self.opt_level}, requires {', '.join(self.required) or 'nothing'}"
        )


class _Stack(threading.local):
    """The contexts that a thread has entered."""

    def __init__(self) -> None:
        self.entered: list[PassContext] = []


_TYPE_NAMES = {
    "bool": "IntImm",
    "int": "IntImm",
    "float": "FloatImm",
    "str": "runtime.String",
    "list": "Array",
}


@contextmanager
def _users_errors(where: object) -> Iterator[None]:
    """A plain ``RuntimeError`` of a pass or instrument that a user wrote is an error of the compiler, which programs
    catch by one name; errors of other types go through."""
    try:
        yield
    except RuntimeError as problem:
        if type(problem) is not RuntimeError:
            raise
        name = where.name if isinstance(where, PassInfo) else type(where).__name__
        raise TilewrightError(f"{name}: {problem}") from problem


class PassContext:
    """Which passes run, with which options, watched by which instruments. Used in a ``with`` block."""

    _stack: ClassVar[_Stack] = _Stack()

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        for given, parameter in (
            (required_pass, "required_pass"),
            (disabled_pass, "disabled_pass"),
            (instruments, "instruments"),
        ):
            if given is not None and not isinstance(given, (list, tuple, set, frozenset)):
                raise TypeError(f"{parameter} is a list or tuple, not {type(given).__name__}")
        self.opt_level = int(opt_level)
        self.required_pass = tuple(required_pass or ())
        self.disabled_pass = tuple(disabled_pass or ())
        self.instruments: list[Any] = list(instruments or ())
        self.config = {key: config_option(key).check(value) for key, value in (config or {}).items()}

    def get(self, key: str) -> Any:
        """The value of an option: what this context sets, or the option's default."""
        option = config_option(key)
        return self.config.get(key, option.default)

    def enabled(self, info: PassInfo) -> bool:
        """True if a pass runs within a ``Sequential``: not disabled, and required or of a low enough level."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    def __enter__(self) -> PassContext:
        self._stack.entered.append(self)
        try:
            self._enter_instruments()
        except BaseException:
            self._stack.entered.pop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._exit_instruments()
        finally:
            self._stack.entered.remove(self)

    def _enter_instruments(self) -> None:
        """Tell each instrument; where one fails, those before it leave again and none stays."""
        for position, instrument in enumerate(self.instruments):
            try:
                with _users_errors(instrument):
                    instrument.enter_pass_ctx()
            except BaseException:
                entered = self.instruments[:position]
                self.instruments = []
                for earlier in entered:
                    earlier.exit_pass_ctx()
                raise

    def _exit_instruments(self) -> None:
        """Tell each instrument; where one fails, none stays."""
        try:
            for instrument in self.instruments:
                with _users_errors(instrument):
                    instrument.exit_pass_ctx()
        except BaseException:
            self.instruments = []
            raise

    def override_instruments(self, instruments: Sequence[Any] | None) -> None:
        """Replace the instruments: the present ones leave, the new ones enter."""
        self._exit_instruments()
        self.instruments = list(instruments or ())
        self._enter_instruments()

    def instrument_before(self, module: IRModule, info: PassInfo) -> bool:
        """True if the pass shall run: it is required, or no instrument objects. The instruments are then told."""
        if info.name not in self.required_pass:
            decisions = []
            for instrument in self.instruments:
                with _users_errors(instrument):
                    decisions.append(instrument.should_run(module, info))
            if not all(decision is None or bool(decision) for decision in decisions):
                return False
        for instrument in self.instruments:
            with _users_errors(instrument):
                instrument.run_before_pass(module, info)
        return True

    def instrument_after(self, module: IRModule, info: PassInfo) -> None:
        """Tell the instruments that the pass is done."""
        for instrument in self.instruments:
            with _users_errors(instrument):
                instrument.run_after_pass(module, info)

    @staticmethod
    def current() -> PassContext:
        """The innermost context of this thread; the default one outside every ``with`` block."""
        entered = PassContext._stack.entered
        return entered[-1] if entered else _DEFAULT

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Every option with the name of its type as TVM names them: "IntImm" for numbers and truth values."""
        return {
            key: {"type": _TYPE_NAMES.get(about["type"], about["type"])}
            for key, about in list_configs().items()
        }

    def __repr__(self) -> str:
        return (
            f"PassContext(opt_level={self.opt_level}, required_pass={list(self.required_pass)}, "
            f"disabled_pass={list(self.disabled_pass)}, instruments={self.instruments}, config={self.config})"
        )


_DEFAULT = PassContext()


class Pass:
    """Base of passes. A subclass gives ``transform_module``, and its ``name``, ``opt_level`` and ``required``."""

    opt_level: int = 0
    name: str = ""
    required: tuple[str, ...] = ()

    registry: ClassVar[dict[str, type[Pass]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name"):
            # The first part of the name tells the level ("tir"); scripts name a required pass with or without it.
            Pass.registry[cls.name] = cls
        # A dataclass writes a __repr__ of its own into every class that has none: this one stays instead.
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    @property
    def info(self) -> PassInfo:
        """Level, name and required passes."""
        return PassInfo(self.opt_level, self.name or type(self).__name__, self.required)

    def __repr__(self) -> str:
        """The pass as text: its name, and the options that differ from their defaults in braces."""
        return f"{text_name(self.info.name)}{options_text(self)}"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The new module."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it transforms a module")

    def __call__(self, mod: IRModule) -> IRModule:
        """Run on a module in the current context."""
        if not isinstance(mod, IRModule):
            raise TypeError(f"pass {self.info.name} runs on an IRModule, not on {type(mod).__name__}")
        context = PassContext.current()
        info = self.info
        if not context.instrument_before(mod, info):
            return mod
        with _users_errors(info):
            result = self.transform_module(mod, context)
        if not isinstance(result, IRModule):
            raise TilewrightError(f"pass {info.name} gave {type(result).__name__} instead of a module")
        if CHECK:
            _check(result, info)
        context.instrument_after(result, info)
        return result


def _check(module: IRModule, info: PassInfo) -> None:
    """Have every function verify itself; a failure says after which pass, and in which function."""
    for name, function in module.functions.items():
        try:
            function.verify(module)
        except TilewrightError as error:
            where = f"after pass {info.name}: function {name.name_hint}"
            raise type(error)(f"{where}: {error.message}", span=error.span) from error


def qualified_name(name: str) -> str:
    """A pass's name with the level before the dot: graph-level passes are registered without theirs."""
    return name if "." in name else f"relay.{name}"


def short_name(name: str) -> str:
    """A pass's name without the level before the dot."""
    return name.rpartition(".")[2]


def text_name(name: str) -> str:
    """The name under which a pass is written: with its level if another pass has the same name."""
    if "." in name or not any(
        other != name and short_name(other) == name for other in Pass.registry if "." in other
    ):
        return name
    return qualified_name(name)


class ModulePass(Pass):
    """Base of passes that look at the whole module."""


def find_pass(name: str) -> Pass:
    """The pass of this name, with its default options."""
    found = Pass.registry.get(name) or next(
        (known for full, known in Pass.registry.items() if full.rpartition(".")[2] == name), None
    )
    if found is None:
        raise TilewrightError(f"there is no pass named {name!r}")
    return found()


class Sequential(Pass):
    """Passes one after another: those the context enables, each after the passes it requires."""

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
    ) -> None:
        if passes is not None and not isinstance(passes, (list, tuple)):
            raise TypeError(f"passes is a list of Pass objects, not {type(passes).__name__}")
        for given in passes or ():
            if not isinstance(given, Pass):
                raise TypeError(f"passes is a list of Pass objects, it has a {type(given).__name__}")
        self.passes = tuple(passes or ())
        self.opt_level = opt_level
        self.name = name
        self.required = tuple(required or ())

    def __repr__(self) -> str:
        """The passes as text, separated by commas; a sequence that is a pass by name prints as that name."""
        named = type(self).__dict__.get("name")
        return super().__repr__() if named else ", ".join(map(repr, self.passes))

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Run the enabled passes in order."""
        for each in self.passes:
            info = each.info
            if not ctx.enabled(info):
                continue
            for needed in info.required:
                mod = find_pass(needed)(mod)
            mod = each(mod)
        return mod


class _FunctionPass(ModulePass):
    """A module pass made from a function of module and context."""

    def __init__(self, function: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        self.function = function
        self.opt_level, self.name, self.required = info.opt_level, info.name, info.required

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self.function(mod, ctx)


def decorated_class(cls: type, base: type[Pass], method: str, info: PassInfo) -> type[Pass]:
    """A pass class whose instances hold an instance of the user's class and call its method."""
    if not callable(getattr(cls, method, None)):
        raise TypeError(f"class {cls.__name__} is to be a pass, so it needs a method {method}")

    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        self._instance = cls(*args, **kwargs)
        self.opt_level, self.name, self.required = info.opt_level, info.name, info.required

    def delegate(self: Any, *args: Any) -> Any:
        return getattr(self._instance, method)(*args)

    def attribute(self: Any, attribute_name: str) -> Any:
        if attribute_name == "_instance":
            raise AttributeError(attribute_name)
        return getattr(self._instance, attribute_name)

    members = {"__init__": initialize, method: delegate, "__getattr__": attribute, "__doc__": cls.__doc__}
    return type(cls.__name__, (base,), {**members, "__module__": cls.__module__})


PassFunction = Callable[[IRModule, PassContext], IRModule]


@overload
def module_pass(
    pass_func: PassFunction, opt_level: int, name: str | None = ..., required: Sequence[str] | None = ...
) -> Pass: ...
@overload
def module_pass(
    pass_func: None = ...,
    opt_level: int | None = ...,
    name: str | None = ...,
    required: Sequence[str] | None = ...,
) -> Callable[[Any], Any]: ...
def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """Make a pass from a function of (module, context), or a pass class from a class with ``transform_module``."""
    info_for = pass_info_maker("module_pass", opt_level, name, required)

    def create(given: Any) -> Any:
        info = info_for(given)
        if isinstance(given, type):
            return decorated_class(given, ModulePass, "transform_module", info)
        if not callable(given):
            raise TypeError(f"module_pass is for functions and classes, not {type(given).__name__}")
        return _FunctionPass(given, info)

    return create if pass_func is None else create(pass_func)


def pass_info_maker(
    decorator: str, opt_level: int | None, name: str | None, required: Sequence[str] | None
) -> Callable[[Any], PassInfo]:
    """The checked arguments of a pass decorator, as a function from what is decorated to its PassInfo."""
    if opt_level is None:
        raise ValueError(f"{decorator} needs opt_level: the optimisation level from which the pass runs")
    if required is not None and not isinstance(required, (list, tuple)):
        raise TypeError(f"required is a list of pass names, not {type(required).__name__}")
    return lambda given: PassInfo(opt_level, name or str(getattr(given, "__name__", decorator)), required)


@dataclass(frozen=True)
class PrintIR(ModulePass):
    """Writes the module to standard error, where TVM's log goes, and gives it back unchanged."""

    header: str = ""
    show_meta_data: bool = False

    name = "PrintIR"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Write the text."""
        sys.stderr.write(f"PrintIR({self.header}):\n{mod}\n")
        return mod
