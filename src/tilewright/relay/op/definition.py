"""How an operator is defined: once, in one place, with everything the compiler needs to know about it.

    define(
        "exp",
        arguments=("data",),
        relation=same_type,                     # from argument types to the result's type
        compute=lambda attrs, inputs, out_type: [topi.exp(inputs[0])],
        reference=lambda attrs, x: numpy.exp(x),
        gradient=lambda call, grad: [grad * call],
        layout=layout_elementwise,
        kind=OpPattern.ELEMWISE,
    )

The parts become attributes of the ``Op``, under the names by which the registration functions of ``relay.op`` set them
("FTVMCompute", "FPrimalGradient", ...). Passes read those, so an operator that a user registers part by part is
equivalent to one that is defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from tilewright.ir.attrs import Attrs
from tilewright.ir.op import CallEffectKind, Op
from tilewright.ir.type import Type
from tilewright.relay.op.rewritten_weight import may_be_rewritten, restoring, understanding
from tilewright.strategy.pattern import OpPattern
from tilewright.support.errors import TilewrightError
from tilewright.te.tensor import Tensor


class RelationError(TilewrightError):
    """A type relation does not hold; inference adds the call, its types and the place."""


class Relation(Protocol):
    """The type of a call's result. ``types`` are those of the arguments, resolved as far as they are known; None means
    that they do not tell enough yet. ``RelationError`` means that they can never fit."""

    def __call__(self, types: Sequence[Type], attrs: Any) -> Type | None: ...


class Completion(Protocol):
    """Types of arguments that follow from those of the others (a weight's from the data's): one for each argument, None
    where nothing follows."""

    def __call__(self, types: Sequence[Type], attrs: Any) -> Sequence[Type | None]: ...


Compute = Callable[[Any, Sequence[Tensor], Any], Sequence[Tensor]]
"""(attrs, inputs, out_type) to the output tensors. A tuple argument is passed as its fields."""

Reference = Callable[..., Any]
"""(attrs, *arguments) to an array, or a tuple of arrays. Arguments are NumPy arrays; a tuple argument is a tuple."""

Gradient = Callable[[Any, Any], Sequence[Any]]
"""(call, gradient of the result) to the gradients of the arguments."""

F = TypeVar("F", bound=Callable[..., Any])
ShapeFunction = Callable[[Any, Sequence[Tensor], Sequence[Any]], Sequence[Tensor]]
"""(attrs, inputs, out_ndims) to one int64 vector for each output. Inputs are the arguments where the operator is data
dependent, else the vectors of their shapes."""


def named_after(op: Op, function: F) -> F:
    """A function that calls an operator, with the operator's name and description."""
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.description
    return function


def define(
    name: str,
    *,
    arguments: Sequence[str] | None,
    relation: Relation,
    reference: Reference | None,
    compute: Compute | None = None,
    attrs: type[Attrs] | None = None,
    completion: Completion | None = None,
    gradient: Gradient | None = None,
    layout: Callable[..., Any] | None = None,
    kind: OpPattern = OpPattern.OPAQUE,
    shape_function: ShapeFunction | None = None,
    data_dependent: bool | Sequence[bool] = False,
    schedule: Callable[..., Any] | None = None,
    stateful: bool = False,
    noncomputational: bool = False,
    updated_argument: int | None = None,
    level: int = 3,
    description: str = "",
) -> Op:
    """Define an operator.

    ``arguments`` are their names, None where there may be any number. ``schedule`` (attrs, outs, target) replaces the
    one that follows from ``kind``. An operator without ``shape_function`` has the one that follows from its relation.
    ``noncomputational`` marks operators that give their argument's memory another type (reshape). The result of an
    operator with an ``updated_argument`` is that argument with some elements changed: given one memory for both, its
    kernels write only those.
    """
    op = Op.register(name, description)
    if op.has_attr("TypeRelation"):
        raise TilewrightError(f"operator {name} is defined twice")
    op.set_num_inputs(-1 if arguments is None else len(arguments))
    op.set_support_level(level)
    for argument in arguments or ():
        op.add_argument(argument, "Tensor", "")
    if may_be_rewritten(attrs):
        relation = understanding(name, relation)
        reference = reference and restoring(name, reference)
    op.add_type_rel(getattr(relation, "__name__", name), relation)
    op.set_attr("TOpPattern", kind)
    op.set_attr("TOpIsStateful", stateful)
    op.set_attr("TCallEffectKind", CallEffectKind.UpdateState if stateful else CallEffectKind.Pure)
    if attrs is not None:
        op.set_attrs_type_key(attrs.type_key)  # type: ignore[attr-defined]
    optional = {
        "AttrsClass": attrs,
        "FCompleteTypes": completion,
        "FTVMCompute": compute,
        # Tells a computation that a user registers in its place from this one.
        "FDefinedCompute": compute,
        "FReference": reference,
        "FPrimalGradient": gradient,
        "FInferCorrectLayout": layout,
        "FShapeFunc": shape_function,
        "FTVMSchedule": schedule,
        "TNonComputational": True if noncomputational else None,
        "TUpdatedArgument": updated_argument,
        "TShapeDataDependent": data_dependent if shape_function is not None else None,
    }
    for key, value in optional.items():
        if value is not None:
            op.set_attr(key, value)
    return op
