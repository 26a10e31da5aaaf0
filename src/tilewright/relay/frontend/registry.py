"""The open registry of frontends: which formats of models can be read, and which one a file is in.

A frontend is a folder beside this file whose ``__init__.py`` has a :class:`Frontend` under the name ``FRONTEND`` (or
several, in a tuple ``FRONTENDS``); the folder needs no other change. Another package adds one through an entry point
of the group ``tilewright.frontends``, and a program through :func:`register_frontend`. Nothing is looked for before the
first model is read.
"""

from __future__ import annotations

import difflib
import pkgutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Final

from tilewright.ir.module import IRModule
from tilewright.relay.frontend.common.description import Described
from tilewright.relay.frontend.common.unsupported import Unsupported
from tilewright.relay.frontend.format_errors import FormatError, NoSuchModel
from tilewright.support.wording import argument

Imported = tuple[IRModule, dict[str, Any]]
"""A module and its parameters."""

ENTRY_POINTS: Final = "tilewright.frontends"
"""The group of entry points; each names a :class:`Frontend`."""
HEAD_BYTES: Final = 256
"""How much of a file ``sniff`` gets."""

_PACKAGE: Final = "tilewright.relay.frontend"
_SHARED: Final = ("common",)
"""Folders of the package that are not frontends."""


def _never(head: bytes) -> bool:
    """For formats whose files begin with anything."""
    return False


@dataclass(frozen=True)
class Frontend:
    """A format of models.

    ``load(path, shape, **options)`` reads a file, where ``shape`` maps names of inputs to shapes, or is None.
    ``sniff`` tells from the first bytes of a file whether it is in the format. ``list_unsupported(path)`` lists the
    operators of a model that cannot be converted, ``describe(path)`` tells what the file says of itself.
    """

    name: str
    suffixes: tuple[str, ...]
    """Without a dot, in lower case."""
    load: Callable[..., Imported]
    sniff: Callable[[bytes], bool] = _never
    list_unsupported: Callable[[str], Sequence[Unsupported]] | None = None
    describe: Callable[[str], Described] | None = None
    is_folder: Callable[[str], bool] | None = None
    """Tells whether a folder is a model in the format."""


_registered: dict[str, Frontend] = {}


def register_frontend(frontend: Frontend, override: bool = False) -> Frontend:
    """Make a format known to this process; a name that is taken is an error unless ``override``."""
    if not override and frontend.name in readable_formats():
        raise FormatError(
            f"there is a frontend {frontend.name!r} already; register_frontend(..., override=True) replaces it"
        )
    _registered[frontend.name] = frontend
    return frontend


def readable_formats() -> dict[str, Frontend]:
    """The frontends by name: the package's own, those of entry points, and the registered ones, which win."""
    return {**_own(), **_installed(), **_registered}


@cache
def _own() -> Mapping[str, Frontend]:
    """The folders of this package."""
    found: dict[str, Frontend] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.ispkg and module.name not in _SHARED:
            package = import_module(f"{_PACKAGE}.{module.name}")
            for made in getattr(package, "FRONTENDS", None) or (package.FRONTEND,):
                found[made.name] = made
    return found


@cache
def _installed() -> Mapping[str, Frontend]:
    """The entry points of other packages. One that cannot be loaded is left out with a warning: others still work."""
    found: dict[str, Frontend] = {}
    for point in metadata.entry_points(group=ENTRY_POINTS):
        try:
            made = point.load()
        except Exception as error:  # noqa: BLE001 - another package's module may raise anything
            problem = f"{type(error).__name__}: {error}"
        else:
            if isinstance(made, Frontend):
                found[made.name] = made
                continue
            problem = f"{point.value} is a {type(made).__name__}, not a Frontend"
        warnings.warn(f"the frontend {point.name!r} cannot be loaded: {problem}", stacklevel=2)
    return found


def find_frontend(name: str) -> Frontend:
    """The frontend of a format; an unknown one raises ``FormatError`` naming the nearest that exists."""
    formats = readable_formats()
    if name not in formats:
        raise FormatError(
            f"there is no model format {name!r}{_nearest(name, formats)}; they are {', '.join(sorted(formats))}"
        )
    return formats[name]


def guess_frontend(path: str) -> Frontend:
    """The frontend for a file: by its suffix, and where that does not tell, by its first bytes."""
    file = Path(path)
    if file.is_dir():
        for one in readable_formats().values():
            if one.is_folder is not None and one.is_folder(path):
                return one
        raise FormatError(f"{path} is a folder: name the model's file in it")
    suffix = file.suffix.lstrip(".").lower()
    formats = list(readable_formats().values())
    candidates = [one for one in formats if suffix in one.suffixes]
    if len(candidates) != 1:
        head = _head(file)
        candidates = [one for one in candidates or formats if one.sniff(head)] or candidates
    if candidates:
        return candidates[0]
    suffixes = [known for one in formats for known in one.suffixes]
    described = ", ".join(_described(one) for _, one in sorted(readable_formats().items()))
    raise FormatError(
        f"the format of {path} is not clear from its name{_nearest(suffix, suffixes, '.')} nor from its content. "
        f"This version reads {described}: if it is one of these under another name, pass {argument('model_format')}; "
        "other models can be exported to ONNX"
    )


def import_model(
    path: str, model_format: str | None = None, shape: Mapping[str, Any] | None = None, **options: Any
) -> Imported:
    """Read a model in the format that is given, or that the file is in; ``options`` go to the frontend."""
    if not Path(path).exists():
        raise NoSuchModel(f"there is no model {path}")
    frontend = find_frontend(model_format) if model_format else guess_frontend(path)
    return frontend.load(str(path), shape, **options)


def _head(file: Path) -> bytes:
    """The first bytes of a file; none of one that cannot be read, which ``load`` will complain about."""
    try:
        with file.open("rb") as opened:
            return opened.read(HEAD_BYTES)
    except (OSError, ValueError):
        return b""


def _described(frontend: Frontend) -> str:
    suffixes = ", ".join(f".{suffix}" for suffix in frontend.suffixes)
    return f"{frontend.name} ({suffixes})" if suffixes else frontend.name


def _nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {prefix}{near[0]}?)" if near else ""
