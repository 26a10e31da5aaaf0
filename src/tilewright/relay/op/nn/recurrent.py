"""A recurrent layer as one operator, with its loop over time inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, TupleWrapper
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.shapes import dims, same, tensor
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.recurrent import CELLS, RecurrentCell


@attributes
class RecurrentAttrs(OpAttrs):
    """The kind of cell: lstm, gru, tanh or relu."""

    cell: str = "lstm"


def _cell(attrs: Any) -> RecurrentCell:
    found = CELLS.get(attrs.cell)
    if found is None:
        raise RelationError(f"the cell is one of {', '.join(CELLS)}, not {attrs.cell!r}")
    return found


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    kind = _cell(attrs)
    if len(types) != 2 + kind.states + kind.biases:
        raise RelationError(f"{attrs.cell} takes {2 + kind.states + kind.biases} arguments, not {len(types)}")
    found = [tensor(one, "an argument of a recurrent layer") for one in types]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    given, weight = dims(known[0]), dims(known[1])
    if len(given) != 3 or len(weight) != 4:
        raise RelationError(
            f"inputs of three and a weight of four dimensions are needed, not {len(given)} and {len(weight)}"
        )
    blocks, hidden, gates, block = weight
    if not all(isinstance(extent, int) for extent in weight):
        raise RelationError("the shape of the weight of a recurrent layer must be known")
    same(gates, kind.gates, "the gates of the cell and those of the weight")
    same(given[2], blocks * gates * block, "the gates of the inputs and those of the weight")
    if not (blocks - 1) * block < hidden <= blocks * block:
        raise RelationError(f"{blocks} blocks of {block} are not those of {hidden} units")
    wanted = [(given[1], hidden)] * kind.states + [(blocks * block,)] * kind.biases
    for one, shape in zip(known[2:], wanted, strict=True):
        if len(one.shape) != len(shape):
            raise RelationError(f"states have two dimensions and biases one, not {len(one.shape)}")
        for extent, other in zip(dims(one), shape, strict=True):
            same(extent, other, "the state or bias, and the batch and the units")
    dtype = known[0].dtype
    last = TensorType((given[1], hidden), dtype)
    return TupleType((TensorType((given[0], given[1], hidden), dtype), *[last] * kind.states))


def _compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    states = _cell(attrs).states
    return topi.nn.recurrent(attrs.cell, inputs[0], inputs[1], inputs[2 : 2 + states], inputs[2 + states :])


def _sigmoid(value: Any) -> Any:
    return 0.5 * (1 + np.tanh(0.5 * value))


def _reference(attrs: Any, given: Any, weight: Any, *rest: Any) -> Any:
    """Step by step in float64."""
    kind = _cell(attrs)
    state = [np.asarray(one, np.float64) for one in rest[: kind.states]]
    biases = [np.asarray(one, np.float64) for one in rest[kind.states :]]
    hidden = weight.shape[1]
    whole = np.asarray(weight, np.float64).transpose(1, 2, 0, 3)
    shown = []
    for line in np.asarray(given, np.float64):
        of_inputs = line.reshape(len(line), weight.shape[0], kind.gates, weight.shape[3]).transpose(
            2, 0, 1, 3
        )
        of_state = np.tensordot(state[0], whole, 1).transpose(1, 0, 2, 3)
        inputs, product = (
            one.reshape(kind.gates, len(line), -1)[..., :hidden] for one in (of_inputs, of_state)
        )
        state = _next(attrs.cell, inputs, product, [one[:hidden] for one in biases], state)
        shown.append(state[0])
    every = np.stack(shown) if shown else np.zeros((0, *state[0].shape))
    return tuple(one.astype(given.dtype) for one in (every, *state))


def _next(cell: str, given: Any, product: Any, biases: list[Any], state: list[Any]) -> list[Any]:
    total = given + product
    if cell == "lstm":
        put, out, forget, new = total
        following = _sigmoid(forget) * state[1] + _sigmoid(put) * np.tanh(new)
        return [_sigmoid(out) * np.tanh(following), following]
    if cell == "gru":
        update, reset = _sigmoid(total[:2])
        candidate = np.tanh(given[2] + reset * (product[2] + biases[0]))
        return [(1 - update) * candidate + update * state[0]]
    return [np.tanh(total[0]) if cell == "tanh" else np.maximum(total[0], 0)]


RECURRENT = define(
    "nn.contrib_recurrent",
    arguments=None,
    attrs=RecurrentAttrs,
    relation=_relation,
    compute=_compute,
    reference=_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=10,
    description="All steps of a recurrent layer.",
)


def contrib_recurrent(
    given: RelayExpr,
    weight: RelayExpr,
    states: Sequence[RelayExpr],
    biases: Sequence[RelayExpr] = (),
    cell: str = "lstm",
) -> TupleWrapper:
    """The hidden states of all steps and the last state, from what the inputs contribute to the gates.

    ``given`` is (steps, batch, blocks * gates * block) and ``weight`` (blocks, hidden, gates, block): the gates of a
    block of units are together, in ONNX's order, and units that fill the last block are zeros. ``states`` are (batch,
    hidden): the hidden one and, for "lstm", the cell. "gru" has a bias, of the candidate's product with the state.
    """
    call = Call(RECURRENT, (given, weight, *states, *biases), RecurrentAttrs(cell))
    return TupleWrapper(call, 1 + len(states))
