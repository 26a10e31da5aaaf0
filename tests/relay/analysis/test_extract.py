"""What a program is made of."""

from tests.relay.programs import call

from tilewright.ir.module import IRModule
from tilewright.relay import Function, Tuple, const, var
from tilewright.relay.analysis import (
    check_constant,
    extract_fused_functions,
    list_op_freqs,
    search_fc_transpose,
)


def test_constants_and_tuples_of_constants_are_constant() -> None:
    """Anything else is not."""
    assert check_constant(const(1))
    assert check_constant(Tuple([const(1), Tuple([const(2.0)])]))
    assert not check_constant(Tuple([const(1), var("x", shape=())]))
    assert not check_constant(call("exp", const(1.0)))


def kernel() -> Function:
    p = var("p", shape=(4,))
    return Function([p], call("exp", call("negative", p)), attrs={"Primitive": 1})


def test_operators_are_counted_in_kernels_too() -> None:
    """A call that is shared counts once."""
    x = var("x", shape=(4,))
    shared = call("exp", x)
    mod = IRModule({"main": Function([x], call("add", call("add", shared, shared), kernel()(x)))})
    assert list_op_freqs(mod) == {"exp": 2, "add": 2, "negative": 1}


def test_kernels_of_one_structure_are_one() -> None:
    """Two equal ones and one that differs make two."""
    x, p = var("x", shape=(4,)), var("p", shape=(4,))
    other = Function([p], call("exp", p), attrs={"Primitive": 1})
    mod = IRModule({"main": Function([x], other(kernel()(kernel()(x))))})
    found = extract_fused_functions(mod)
    assert len(found) == 2
    assert {function.params[0].name_hint for function in found.values()} == {"p"}


def test_transposed_weights_are_found_by_name() -> None:
    """Only where a dense takes the transposed variable itself."""
    x, w, v = var("x", shape=(1, 2)), var("w", shape=(2, 3)), var("v", shape=(3, 2))
    transposed = call("transpose", w, axes=(1, 0))
    assert search_fc_transpose(call("nn.dense", x, transposed)) == ["w"]
    assert search_fc_transpose(call("nn.dense", x, v)) == []
    assert search_fc_transpose(call("transpose", v, axes=(1, 0))) == []
