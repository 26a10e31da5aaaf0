"""Many units at once: from the cache where they are there, else compiled, in parallel where that is possible."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field

from tilewright.codegen import generator_for
from tilewright.compile import cache
from tilewright.compile.unit import Unit, compile_modules, compile_parts, dump_stages, split
from tilewright.compile.workers import Failed, Job, Outcome, has_workers, pool
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import InternalError, TilewrightError
from tilewright.support.options import cache_dir, compile_seconds, dump_folder
from tilewright.target import Target


@dataclass(frozen=True)
class RemoteLowering:
    """How a worker process makes a unit: a job, and its payload. The job lowers, calls ``compile_loops``, and answers
    with the bytes of the unit."""

    job: Job
    payload: bytes


@dataclass(frozen=True)
class UnitRequest:
    """A unit to be compiled: how to make its loops here, and, where everything that decides them is this package's own,
    a shortcut to them in the cache and the way to make them in a worker."""

    name: str
    target: Target
    lower: Callable[[], IRModule] = field(repr=False)
    shortcut: str | None = None
    remote: RemoteLowering | None = None


@dataclass(frozen=True)
class CacheReport:
    """How many kernels were compiled, and how many came from the cache."""

    compiled: int
    cached: int


def compile_loops(
    loops: IRModule, target: Target, host: Target, shortcut: str | None = None
) -> tuple[Unit, bool]:
    """The unit of lowered loops, through the cache, and whether it came from there."""
    parts = split({target: loops}, host)
    if dump_folder() is not None or _reads_files(parts.host.program.json):
        unit = compile_parts(parts)
        dump_stages({target: loops}, parts, unit)
        return unit, False
    if cache.folder() is None:
        return compile_parts(parts), False
    key = parts.digest()
    found = cache.find_unit(key)
    unit = compile_parts(parts) if found is None else found
    if found is None:
        cache.store_unit(key, unit)
    if shortcut is not None:
        cache.store_shortcut(shortcut, key)
    return unit, found is not None


def _reads_files(program: str) -> bool:
    """True for a program that names LLVM code to link in, maybe by the path of a file whose content may change."""
    return "pragma_import_llvm" in program


def _from_cache(request: UnitRequest) -> Unit | None:
    if request.shortcut is None or dump_folder() is not None:
        return None
    key = cache.find_shortcut(request.shortcut)
    return None if key is None else cache.find_unit(key)


_WATCHER: ContextVar[Callable[[int, int], None] | None] = ContextVar("watcher_of_units", default=None)


@contextmanager
def watched(watcher: Callable[[int, int], None]) -> Iterator[None]:
    """Inside, the watcher is told how many units of a program are compiled, and of how many, after each of them."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def compile_units(requests: Sequence[UnitRequest], host: Target) -> tuple[dict[str, Unit], CacheReport]:
    """The units by name; see ``watched`` for those who wait."""
    watcher = _WATCHER.get()
    if not all(generator_for(request.target).links_separate_code for request in requests):
        return _compile_together(requests, host), CacheReport(len(requests), 0)
    units: dict[str, Unit] = {}
    for request in requests:
        found = _from_cache(request)
        if found is not None:
            units[request.name] = found
    missing = [request for request in requests if request.name not in units]
    done = len(units)

    def tell(_: int = 0) -> None:
        nonlocal done
        done += 1
        if watcher is not None:
            watcher(done, len(requests))

    elsewhere = [request for request in missing if request.remote is not None] if has_workers() else []
    for request, outcome in zip(elsewhere, _in_workers(elsewhere, tell), strict=True):
        if isinstance(outcome, Failed):
            if outcome.crashed:
                raise _crash(request, outcome)
            # An exception of Python's comes again below, with its traceback and the model's node.
            continue
        units[request.name] = Unit.from_bytes(outcome.result)
    compiled = len(units) - (len(requests) - len(missing))
    for request in missing:
        if request.name not in units:
            unit, known = compile_loops(request.lower(), request.target, host, request.shortcut)
            units[request.name] = unit
            compiled += not known
            if request not in elsewhere:
                tell()
    return {request.name: units[request.name] for request in requests}, CacheReport(
        compiled, len(requests) - compiled
    )


def _in_workers(requests: Sequence[UnitRequest], tell: Callable[[int], None]) -> list[Outcome]:
    jobs = {request.remote.job for request in requests if request.remote is not None}
    outcomes: dict[str, Outcome] = {}
    for job in jobs:
        chosen = [request for request in requests if request.remote is not None and request.remote.job is job]
        payloads = [request.remote.payload for request in chosen if request.remote is not None]
        try:
            made = pool().run(job, payloads, compile_seconds(), tell)
        except OSError as problem:  # there are no more processes to be had
            made = [Failed(str(problem), crashed=False) for _ in chosen]
        outcomes |= {request.name: outcome for request, outcome in zip(chosen, made, strict=True)}
    return [outcomes[request.name] for request in requests]


def _compile_together(requests: Sequence[UnitRequest], host: Target) -> dict[str, Unit]:
    """One unit with all functions, for generators that make a library as a whole; the other names have none."""
    modules: dict[Target, IRModule] = {}
    for request in requests:
        into = modules.setdefault(request.target, IRModule())
        for variable, function in request.lower().functions.items():
            into[variable.name_hint] = function
    return {requests[0].name: compile_modules(modules, host)} if requests else {}


def _crash(request: UnitRequest, outcome: Failed) -> TilewrightError:
    """The error of a unit that took its worker with it, with the program that did."""
    assert request.remote is not None
    name = hashlib.sha256(request.remote.payload).hexdigest()[:16]
    path = cache_dir() / "failures" / f"{name}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, request.remote.payload)
        kept = f"It was written to {path}."
    except OSError as problem:
        kept = f"It could not be written to {path}: {problem}."
    return InternalError(f"{request.name}: {outcome.reason}\n{kept}")


def context_to_json(context: PassContext) -> str | None:
    """What a pass context says, for a worker; None where a part of it is not plain data."""
    if context.instruments:
        return None
    said = [context.opt_level, context.required_pass, context.disabled_pass, context.config]
    try:
        return json.dumps(said, sort_keys=True, default=asdict)
    except TypeError:
        return None


def context_from_json(text: str) -> PassContext:
    """The context that ``context_to_json`` wrote."""
    opt_level, required, disabled, config = json.loads(text)
    return PassContext(opt_level, required, disabled, config=config)
