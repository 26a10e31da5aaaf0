"""The registry of operators."""

import pytest

from tilewright.ir.intrinsics import MATH_UNARY
from tilewright.ir.op import CallEffectKind, Op, register_intrin_lowering, register_op_attr
from tilewright.support.errors import OpError, TilewrightError


def test_operators_are_unique() -> None:
    """A name has one operator; an unknown name is an error."""
    assert Op.get("tir.exp") is Op.get("tir.exp")
    assert Op.register("tir.exp") is Op.get("tir.exp")
    with pytest.raises(OpError, match=r"'tir\.unheard_of' is not registered"):
        Op.get("tir.unheard_of")
    with pytest.raises(TilewrightError, match=r"Op\.register"):
        Op()


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("exp", CallEffectKind.Pure),
        ("if_then_else", CallEffectKind.Pure),
        ("likely", CallEffectKind.ExprAnnotation),
        ("call_extern", CallEffectKind.UpdateState),
        ("call_pure_extern", CallEffectKind.Pure),
        ("tvm_call_packed", CallEffectKind.UpdateState),
        ("tvm_storage_sync", CallEffectKind.UpdateState),
        ("tvm_struct_get", CallEffectKind.ReadState),
        ("tvm_access_ptr", CallEffectKind.SpecialCallArg),
        ("tvm_tuple", CallEffectKind.EmbedInfo),
        ("ret", CallEffectKind.ControlJump),
    ],
)
def test_effects(name: str, effect: CallEffectKind) -> None:
    """Every intrinsic says what a call may do."""
    assert Op.get(f"tir.{name}").effect is effect


def test_every_math_function_is_there() -> None:
    """Mathematical functions are pure and take one argument."""
    for name in MATH_UNARY:
        op = Op.get(f"tir.{name}")
        assert op.effect is CallEffectKind.Pure and op.num_inputs == 1


def test_unknown_effect_is_the_worst() -> None:
    """An operator that says nothing is taken to write memory."""
    assert Op.register("test.silent").effect is CallEffectKind.UpdateState


def test_attribute_levels() -> None:
    """A higher level wins, the same level twice is an error, resetting forgets."""
    op = Op.register("test.levels")
    op.set_attr("key", 1)
    op.set_attr("key", 0, plevel=5)
    assert op.get_attr("key") == 1
    op.set_attr("key", 2, plevel=11)
    assert op.get_attr("key") == 2 and op.has_attr("key")
    with pytest.raises(OpError, match="already set at level 11"):
        op.set_attr("key", 3, plevel=11)
    op.reset_attr("key")
    assert op.get_attr("key") is None


def test_registering_attributes() -> None:
    """Attributes are set by call and by decorator; lowering rules are attributes of a target."""
    register_op_attr("test.attributes", "pattern", 3)
    assert Op.get("test.attributes").get_attr("pattern") == 3

    @register_op_attr("test.attributes", "compute")
    def compute() -> int:
        return 5

    assert Op.get("test.attributes").get_attr("compute")() == 5 and compute() == 5

    @register_intrin_lowering("test.attributes", "cuda")
    def lower(op: object) -> object:
        return op

    assert Op.get("test.attributes").get_attr("cuda.FLowerIntrinsic") is lower


def test_descriptions() -> None:
    """An operator describes its arguments, level and attributes."""
    op = Op.register("test.described")
    op.add_argument("data", "Tensor", "what is read")
    op.add_argument("axis", "int", "where")
    op.set_num_inputs(2)
    op.set_support_level(1)
    op.set_attrs_type_key("test.Attrs")
    assert [name for name, _, _ in op.get_attr("Arguments")] == ["data", "axis"]
    assert (op.num_inputs, op.support_level, op.attrs_type_key) == (2, 1, "test.Attrs")
    assert "test.described" in Op.list_op_names() and repr(op) == "Op(test.described)"
