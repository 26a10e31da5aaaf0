"""PaddlePaddle as a format of models: ``from_paddle``, and the files that ``paddle.jit.save`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from tilewright.ir.module import IRModule
from tilewright.relay.frontend.common import Unsupported, check_input_names, require_supported
from tilewright.relay.frontend.common.description import Described, Tensor, Weights
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.paddle.importer import ProgramImporter, list_unsupported, needed_operators
from tilewright.relay.frontend.paddle.parameters import read_parameters, scope_values
from tilewright.relay.frontend.paddle.pir import MAGIC, read_pir
from tilewright.relay.frontend.paddle.program import Program, read_program
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

Array = np.ndarray[Any, Any]
_PARAMETERS: Final = ".pdiparams"
_PROGRAMS: Final = (".pdmodel", ".json")


def from_paddle(
    program_or_layer: Any, shape_dict: Mapping[str, Any] | None = None, scope: Any = None
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a PaddlePaddle model.

    The model is the path of a ``.pdmodel`` or ``.json`` file with its ``.pdiparams`` beside it (or of both without a
    suffix, as ``paddle.jit.save`` was given it), a layer that ``paddle.jit.load`` gave, or a program. ``scope`` has the
    parameters of a program: a scope, a dictionary of arrays, or the path of a file. ``shape_dict`` maps inputs to
    shapes; sizes that neither it nor the program fixes stay open.
    """
    program, values = _read(program_or_layer, scope)
    require_supported(list_unsupported(program))
    shapes = shape_dict or {}
    check_input_names(shapes, program.inputs, program.inputs)
    scope_of = Scope(IRModule())
    importer = ProgramImporter(program, scope_of, values, shapes)
    with recursion_room():
        outputs = importer.convert()
        return finished(scope_of.module, importer.inputs, outputs, program.outputs, scope_of.params)


def _read(model: Any, scope: Any) -> tuple[Program, dict[str, Array]]:
    """The program of a model, and the values of its parameters."""
    if isinstance(model, (str, Path)):
        path = _program_file(Path(model))
        program = _from_bytes(path.read_bytes())
        return program, _values(scope if scope is not None else _beside(path), program)
    if isinstance(model, (bytes, bytearray)):
        program = _from_bytes(bytes(model))
        return program, _values(scope, program)
    if not callable(getattr(model, "program", None)):
        program = _in_memory(model)
        return program, _values(scope, program)
    # A layer: its parameters and buffers are named as in the program, which does not say what goes in and out.
    names = [[one.name for one in listed()] for listed in (model._input_spec, model._output_spec)]
    program = _in_memory(model.program(), *names)
    if scope is not None:
        return program, _values(scope, program)
    return program, scope_values({one.name: one for one in [*model.parameters(), *model.buffers()]}, program)


def _in_memory(program: Any, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Program:
    """A program that PaddlePaddle holds."""
    if hasattr(program, "desc"):
        return read_program(bytes(program.desc.serialize_to_string()), inputs, outputs)
    if not hasattr(program, "global_block"):
        raise ModelError(
            f"a {type(program).__name__} is not a PaddlePaddle program, nor a layer or a file of one"
        )
    try:
        from paddle.base.core import serialize_pir_program
    except ImportError as missing:
        raise ModelError(
            "this program can be read from files only: save it with paddle.jit.save and give the path"
        ) from missing
    with TemporaryDirectory() as folder:
        file = Path(folder) / "program.json"
        serialize_pir_program(program, str(file), 1, True, False, False)
        return read_pir(file.read_bytes())


def _from_bytes(content: bytes) -> Program:
    return read_pir(content) if content.lstrip()[:1] == b"{" else read_program(content)


def _values(scope: Any, program: Program) -> dict[str, Array]:
    if scope is None:
        if program.parameters:
            raise ModelError(
                f"the program has {len(program.parameters)} parameters, and their values are not given: pass scope="
            )
        return {}
    if isinstance(scope, (str, Path)):
        return read_parameters(Path(scope).read_bytes(), program)
    if isinstance(scope, (bytes, bytearray)):
        return read_parameters(bytes(scope), program)
    return scope_values(scope, program)


def _program_file(path: Path) -> Path:
    """The file of the program that a path stands for."""
    if path.suffix == _PARAMETERS:
        raise ModelError(
            f"{path} holds parameters only: name the program's file, which ends in {_PROGRAMS[0]}"
        )
    if path.is_file():
        return path
    for suffix in _PROGRAMS:
        beside = path.with_name(path.name + suffix)
        if beside.is_file():
            return beside
    raise ModelError(f"there is no model {path}")


def _beside(path: Path) -> Path | None:
    found = path.with_suffix(_PARAMETERS)
    return found if found.is_file() else None


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a program's file with the parameters beside it; the options are those of ``from_paddle``."""
    return from_paddle(Path(path), shape, **options)


def is_paddle(head: bytes) -> bool:
    """True if a file begins as the JSON text of a program does; the older encoding begins with anything."""
    return b"".join(head.split()).startswith(MAGIC)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The operators of a model that cannot be converted."""
    return list_unsupported(_from_bytes(_program_file(Path(path)).read_bytes()))


def describe(path: str) -> Described:
    """What the files say of themselves."""
    file = _program_file(Path(path))
    program = _from_bytes(file.read_bytes())
    counts: dict[str, int] = {}
    for one in needed_operators(program):
        counts[one.operator] = counts.get(one.operator, 0) + 1
    beside = _beside(file)
    held = list(read_parameters(beside.read_bytes(), program).values()) if beside else []
    weights = Weights(len(held), sum(one.size for one in held), sum(one.nbytes for one in held))
    return Described(
        "paddle",
        "PaddlePaddle",
        {"program": program.version},
        counts,
        {beside.name: weights} if beside is not None else {},
        *(
            [Tensor(name, program.tensors[name].dtype, program.tensors[name].shape) for name in names]
            for names in (program.inputs, program.outputs)
        ),
    )


FRONTEND: Final = Frontend("paddle", ("pdmodel", "pdiparams"), load, is_paddle, unsupported_in, describe)
