"""Values of attributes."""

import json

import tilewright as tvm
from tilewright import relay
from tilewright.ir.serialize import load_json, save_json
from tilewright.relay.op.attributes import Integer, plain


def test_numbers_in_lists_have_a_value():
    """They are integers, and give their number as TVM's constants do; a single number is a plain one."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    call = relay.nn.conv2d(x, relay.var("w", shape=(4, 3, 3, 3)), padding=[1, tvm.tir.IntImm("int32", 2)])
    assert [pad.value for pad in call.attrs.padding] == [1, 2, 1, 2]
    assert call.attrs.padding == (1, 2, 1, 2) and sum(call.attrs.strides) == 2
    assert type(call.attrs.groups) is int
    shape = relay.reshape(x, (1, -1)).attrs.newshape
    assert [extent.value for extent in shape] == [1, -1] and json.dumps(shape) == "[1, -1]"


def test_numbers_in_lists_pass_for_integers():
    """In expressions, in text and as JSON; truth values stay what they are."""
    number = Integer(7)
    assert repr(number) == str(number) == f"{number}" == "7" and hash(number) == hash(7)
    assert tvm.tir.const(number, "int32").value == 7 and (tvm.te.var("n") + number).b.value == 7
    assert plain([True, 2, [3.5, 4]]) == (True, 2, (3.5, 4))
    assert plain([True])[0] is True and plain([[5]])[0][0].value == 5


def test_numbers_in_lists_are_read_again():
    """A call that was written as JSON has them too."""
    x = relay.var("x", shape=(2, 3))
    found = load_json(save_json(relay.transpose(x, (1, 0))))
    assert [axis.value for axis in found.attrs.axes] == [1, 0]
