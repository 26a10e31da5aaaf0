"""The finder that serves TVM's names: modules of the tables, names that the core has elsewhere, and ``tvm`` itself.

It comes before the other finders. A module of ``MODULES`` or ``PROVIDERS`` becomes a module object whose names are
fetched from their home modules on first use. A module of the core that lacks names or modules which TVM has in it
is loaded as usual, and then serves those too; the core does not know of it. Names that are nowhere are looked up in
``not_there``, last. The options that are accepted and ignored are added to the core's tables in the
same way.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tilewright.compat import not_there
from tilewright.compat.composite_targets import add_composite_targets
from tilewright.compat.ignored_options import add_pass_options, add_target_options
from tilewright.compat.modules import MODULES, NAMES
from tilewright.compat.providers import PROVIDERS
from tilewright.compat.test_attrs import add_test_attributes
from tilewright.support.errors import TilewrightError

PACKAGE = "tilewright"
FOREIGN = "tvm"

_ABSENT = object()
_COMPLETED: dict[str, Callable[[ModuleType], None]] = {
    "driver.tvmc.composite_target": add_composite_targets,
    "ir.make_node": add_test_attributes,
    "ir.pass_config": add_pass_options,
    "target.kind": add_target_options,
}
"""Modules whose tables get entries of TVM's, with the functions that add them."""
_SERVED = {*MODULES, *PROVIDERS}
_EXTENDED = {
    *NAMES,
    *_COMPLETED,
    *not_there.incomplete_modules(),
    *(path.rpartition(".")[0] for path in _SERVED),
}
"""Modules that have more names or options than their files define."""


def _path_of(module: str) -> str:
    """The path of a module without the package's name; empty for the package."""
    return module.removeprefix(PACKAGE).removeprefix(".")


def _module(path: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{path}" if path else PACKAGE)


@functools.cache
def _homes(path: str) -> dict[str, tuple[str, str]]:
    """For each name that the tables give a module: the module where it is defined, and its name there."""
    made: dict[str, tuple[str, str]] = {}
    for home, words in {**MODULES.get(path, {}), **NAMES.get(path, {})}.items():
        for word in words.split():
            for given in _public_names(_module(home)) if word == "*" else (word,):
                name, _, there = given.partition("=")
                made[name] = (home, there or name)
    return made


def _public_names(module: ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    return [name for name in vars(module) if not name.startswith("_")] if listed is None else list(listed)


def _served(path: str, name: str) -> Any:
    """What the tables have for a name of a module."""
    child = f"{path}.{name}" if path else name
    if child in _SERVED:
        return _module(child)
    home = _homes(path).get(name)
    return _ABSENT if home is None else getattr(_module(home[0]), home[1])


def attribute(module: str, name: str, own: Callable[[str], Any] | None = None) -> Any:
    """An attribute that a module does not have itself; ``own`` is the module's own ``__getattr__``."""
    path = _path_of(module)
    if not name.startswith("__"):
        found = _served(path, name)
        if found is not _ABSENT:
            return found
    elif name == "__all__" and path in MODULES:
        return [each for each in _homes(path) if not each.startswith("_")]
    if own is not None:
        try:
            return own(name)
        except AttributeError:
            if name.startswith("__"):
                raise
    whole = f"{path}.{name}" if path else name
    if not_there.is_module(whole):
        return _module(whole)
    advice = None if name.startswith("__") else not_there.advice_on(whole)
    if advice is not None:
        raise not_there.NotInThisVersion(not_there.message_about(whole, advice))
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def names(module: str) -> list[str]:
    """The names that the tables add to a module."""
    path = _path_of(module)
    inside = [each for each in _SERVED if each.rpartition(".")[0] == path]
    return [*_homes(path), *(each.rpartition(".")[2] for each in inside)]


def _extend(module: ModuleType) -> None:
    """Make a module serve the names of the tables."""
    own, listing = vars(module).get("__getattr__"), vars(module).get("__dir__")

    def listed() -> list[str]:
        return sorted({*(listing() if listing else vars(module)), *names(module.__name__)})

    vars(module).update(
        __getattr__=lambda name: attribute(module.__name__, name, own),
        __dir__=listed,
    )
    _keep_functions(module)


def _keep_functions(package: ModuleType) -> None:
    """Load the modules of the tables that share their name with a function of their package (``topi.scatter_add``): an
    import puts the module into the package, where TVM has the function."""
    path = _path_of(package.__name__)
    for child in _SERVED:
        parent, _, name = child.rpartition(".")
        if parent == path and name in vars(package):
            kept = vars(package)[name]
            _module(child)
            vars(package)[name] = kept


class _Served(Loader):
    """Loads a module of the tables: an empty one that serves its names."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name, f"The module {FOREIGN}.{_path_of(spec.name)} of TVM.")

    def exec_module(self, module: ModuleType) -> None:
        path = _path_of(module.__name__)
        if path in PROVIDERS:
            home, _, function = PROVIDERS[path].partition(":")
            given = getattr(importlib.import_module(home), function)(path)
            vars(module).update(__all__=sorted(name for name in given if not name.startswith("_")))
            vars(module).update(given)
        _extend(module)


class _Missing(Loader):
    """Loads a module that this version lacks."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        advice = not_there.advice_on(_path_of(spec.name))
        return not_there.MissingModule(spec.name, f"Not in this version of Tilewright: {advice}.")

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


class NamesFinder(MetaPathFinder):
    """Finds the modules of the tables, and extends those of the core."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{PACKAGE}."):
            return None
        name = _path_of(fullname)
        if name in _SERVED:
            return ModuleSpec(fullname, _Served(), is_package=True)
        if name in _EXTENDED or not_there.advice_on(name) is not None:
            spec = self._ordinary(fullname, path, target)
            return _missing(fullname, name) if spec is None else _extending(spec)
        return None

    def _ordinary(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """What the other finders have."""
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
        return None


def _missing(fullname: str, name: str) -> ModuleSpec | None:
    advice = not_there.advice_on(name)
    if advice is None:
        return None
    if not not_there.is_module(name):
        raise not_there.ModuleNotInThisVersion(not_there.message_about(name, advice))
    return ModuleSpec(fullname, _Missing(), is_package=True)


def _extending(spec: ModuleSpec) -> ModuleSpec:
    """The same spec, whose loader extends the module when it is loaded."""
    loader = spec.loader
    if loader is not None:
        load = loader.exec_module

        def load_and_extend(module: ModuleType) -> None:
            load(module)
            _extend(module)
            if (complete := _COMPLETED.get(_path_of(module.__name__))) is not None:
                complete(module)

        vars(loader)["exec_module"] = load_and_extend
    return spec


class _SameModule(Loader):
    """Gives a module that is loaded already, under a second name."""

    def __init__(self, name: str) -> None:
        self.module = importlib.import_module(name)
        self.spec = self.module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def get_code(self, _: str) -> Any:
        """The code of the module, for ``python -m``."""
        found = importlib.util.find_spec(self.module.__name__)
        get_code = None if found is None else getattr(found.loader, "get_code", None)
        return None if get_code is None else get_code(self.module.__name__)

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put the second name into the module; it keeps the first.
        module.__spec__ = self.spec
        _name_shadowed_modules(module)


def _name_shadowed_modules(package: ModuleType) -> None:
    """Give the modules that share their name with a function of their package (``topi.nn.conv2d``) their second name at
    once: importing them by it later would put the module into the package, in the place of the function."""
    for name, value in vars(package).items():
        hidden = sys.modules.get(f"{package.__name__}.{name}")
        if hidden is not None and value is not hidden:
            sys.modules.setdefault(FOREIGN + f"{package.__name__}.{name}"[len(PACKAGE) :], hidden)


class _Foreign(ModuleType):
    """The package under TVM's name, which is its ``__name__``: programs compare that. The rest is the package's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules[PACKAGE], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(sys.modules[PACKAGE], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(sys.modules[PACKAGE], name)

    def __dir__(self) -> list[str]:
        return dir(sys.modules[PACKAGE])


class _ForeignPackage(Loader):
    """Loads ``tvm`` itself."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        package = importlib.import_module(PACKAGE)
        return _Foreign(spec.name, package.__doc__)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


def our_name(name: str) -> str | None:
    """The name of our module for a name of TVM's; None for other packages' names."""
    if name == FOREIGN or name.startswith(f"{FOREIGN}."):
        return PACKAGE + name[len(FOREIGN) :]
    return None


class ForeignFinder(MetaPathFinder):
    """Finds ``tvm`` and everything below it in Tilewright."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = our_name(fullname)
        if name is None:
            return None
        if fullname == FOREIGN:
            return ModuleSpec(fullname, _ForeignPackage(), is_package=True)
        try:
            known = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            known = None
        if known is None:
            raise ModuleNotFoundError(
                f"{fullname} is not part of this version of Tilewright (there is no module {name})",
                name=fullname,
            )
        path_here = _path_of(name)
        is_package = known.submodule_search_locations is not None or any(
            each.startswith(f"{path_here}.") for each in _SERVED
        )
        return ModuleSpec(fullname, _SameModule(name), is_package=is_package)


def install() -> None:
    """Serve TVM's modules and names below ``tilewright`` from now on."""
    if not any(isinstance(finder, NamesFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, NamesFinder())
        for path in _EXTENDED - _SERVED - {""}:
            loaded = sys.modules.get(f"{PACKAGE}.{path}")
            if loaded is not None:
                # Loaded before this finder was there: what the finder itself imports.
                _extend(loaded)


def install_foreign() -> None:
    """Serve ``tvm`` from now on. Does nothing the second time; refuses where the real TVM is loaded already."""
    loaded = sys.modules.get(FOREIGN)
    if loaded is not None and not isinstance(loaded, _Foreign):
        raise TilewrightError(
            "tvm is imported already, from another package: import tilewright.as_tvm before it"
        )
    if not any(isinstance(finder, ForeignFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, ForeignFinder())
