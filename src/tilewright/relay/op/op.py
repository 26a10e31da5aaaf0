"""The operator registry as users see it: finding operators, and setting their compiler attributes.

Each ``register_*`` function works as a decorator if its function argument is omitted. A registration with a higher
``level`` overrides the definition's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.op import Op, register_op_attr
from tilewright.strategy import DEFAULT_LEVEL, scheduled_as
from tilewright.strategy import OpImplementation as OpImplementation
from tilewright.strategy import OpPattern as OpPattern
from tilewright.strategy import OpSpecialization as OpSpecialization
from tilewright.strategy import OpStrategy as OpStrategy
from tilewright.support.errors import OpError
from tilewright.target.generic_func import GenericFunc


def get(op_name: str) -> Op:
    """The operator of this name."""
    return Op.get(op_name)


def register(op_name: str, describe: str = "") -> Op:
    """A new operator; an error where there is one of this name."""
    if op_name in Op.registry and Op.registry[op_name].has_attr("TypeRelation"):
        raise OpError(f"operator {op_name} is registered already")
    return Op.register(op_name, describe)


def register_stateful(op_name: str, stateful: bool, level: int = DEFAULT_LEVEL) -> Any:
    """Say whether calls of the operator have an effect."""
    return register_op_attr(op_name, "TOpIsStateful", stateful, level)


def register_compute(op_name: str, compute: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set the tensor expression: (attrs, inputs, out_type) to a list of tensors."""
    return register_op_attr(op_name, "FTVMCompute", compute, level)


def register_strategy(op_name: str, fstrategy: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set the strategy: (attrs, inputs, out_type, target) to an ``OpStrategy``."""
    if fstrategy is not None and not isinstance(fstrategy, GenericFunc) and not callable(fstrategy):
        raise OpError(f"the strategy of {op_name} is a function, not {type(fstrategy).__name__}")
    return register_op_attr(op_name, "FTVMStrategy", fstrategy, level)


def register_schedule(op_name: str, schedule: Any, level: int = DEFAULT_LEVEL) -> Any:
    """Set the schedule: (attrs, outs, target) to a schedule. The tensor expression stays."""
    return register_op_attr(op_name, "FTVMSchedule", schedule, level)


schedule_injective = scheduled_as("injective")
schedule_reduce = scheduled_as("reduce")
schedule_default = scheduled_as("default")


def register_injective_schedule(op_name: str, level: int = DEFAULT_LEVEL) -> Any:
    """Schedule the operator as one that reads one element for each that it writes."""
    return register_schedule(op_name, schedule_injective, level)


def register_broadcast_schedule(op_name: str, level: int = DEFAULT_LEVEL) -> Any:
    """Schedule the operator as an elementwise one with repeated axes."""
    return register_schedule(op_name, schedule_injective, level)


def register_reduce_schedule(op_name: str, level: int = DEFAULT_LEVEL) -> Any:
    """Schedule the operator as a reduction."""
    return register_schedule(op_name, schedule_reduce, level)


def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set what AlterOpLayout asks: (attrs, inputs, tinfos, out_type) to an expression, or None to leave the call."""
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


def register_convert_op_layout(op_name: str, convert_layout: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set what ConvertLayout asks: (attrs, inputs, tinfos, desired_layouts) to an expression."""
    return register_op_attr(op_name, "FTVMConvertOpLayout", convert_layout, level)


def register_infer_correct_layout(op_name: str, infer_layout: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set the layout rule; see ``relay.op.layout_rules``. It is given no layouts where none are offered."""

    def register(rule: Any) -> Any:
        def asked(attrs: Any, offered: Sequence[Any], original: Sequence[Any], types: Sequence[Any]) -> Any:
            given = [] if all(each is None for each in offered) else offered
            return rule(attrs, given, original, types)

        register_op_attr(op_name, "FInferCorrectLayout", asked, level)
        return rule

    return register if infer_layout is None else register(infer_layout)


def register_legalize(op_name: str, legal_op: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set what Legalize asks: (attrs, inputs, types) to an expression, or None to leave the call."""
    return register_op_attr(op_name, "FTVMLegalize", legal_op, level)


def register_pattern(op_name: str, pattern: int, level: int = DEFAULT_LEVEL) -> Any:
    """Set how the operator takes part in fusion."""
    return register_op_attr(op_name, "TOpPattern", OpPattern(pattern), level)


def register_gradient(op_name: str, fgradient: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set the gradient: (call, gradient of the result) to the gradients of the arguments."""
    return register_op_attr(op_name, "FPrimalGradient", fgradient, level)


def register_shape_func(
    op_name: str, data_dependent: bool | Sequence[bool], shape_func: Any = None, level: int = DEFAULT_LEVEL
) -> Any:
    """Set the shape function: (attrs, inputs, out_ndims) to one vector for each output."""
    Op.register(op_name).set_attr("TShapeDataDependent", data_dependent, level)
    return register_op_attr(op_name, "FShapeFunc", shape_func, level)


def register_external_compiler(op_name: str, fexternal: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set the function that says whether another code generator takes the operator."""
    return register_op_attr(op_name, "FTVMExternalCompiler", fexternal, level)


def register_fake_quantization_to_integer(op_name: str, func: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set how FakeQuantizationToInteger rewrites the operator."""
    return register_op_attr(op_name, "FTVMFakeQuantizationToInteger", func, level)


def register_mixed_precision_conversion(op_name: str, func: Any = None, level: int = DEFAULT_LEVEL) -> Any:
    """Set the function that gives an operator's category and types for ToMixedPrecision."""
    return register_op_attr(op_name, "FTVMMixedPrecisionConversionType", func, level)
