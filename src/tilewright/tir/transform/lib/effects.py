"""Side effects of expressions: what a pass may move, repeat or remove."""

from __future__ import annotations

from tilewright.ir.expr import BufferLoad, Call, Load, PrimExpr, ProducerLoad
from tilewright.ir.functor import post_order
from tilewright.ir.op import CallEffectKind

_WITHOUT_EFFECT = (CallEffectKind.ExprAnnotation, CallEffectKind.SpecialCallArg, CallEffectKind.EmbedInfo)


def side_effect(expr: PrimExpr) -> CallEffectKind:
    """The strongest effect in the expression: Pure, ReadState, UpdateState or ControlJump."""
    strongest = CallEffectKind.Pure
    for found in post_order(expr):
        if isinstance(found, (Load, BufferLoad, ProducerLoad)):
            effect = CallEffectKind.ReadState
        elif isinstance(found, Call) and found.effect not in _WITHOUT_EFFECT:
            effect = found.effect
        else:
            continue
        strongest = max(strongest, effect)
    return strongest


def is_pure(expr: PrimExpr) -> bool:
    """True if the value depends only on variables, not on memory."""
    return side_effect(expr) <= CallEffectKind.Pure


def is_droppable(expr: PrimExpr) -> bool:
    """True if leaving the evaluation out changes nothing."""
    return side_effect(expr) <= CallEffectKind.ReadState
