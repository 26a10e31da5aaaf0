"""The classes of attributes, in one place."""

from tilewright import relay
from tilewright.relay.op import op_attrs
from tilewright.relay.op.attributes import OpAttrs


def _classes(base: type) -> set[type]:
    return {inner for one in base.__subclasses__() for inner in {one, *_classes(one)}}


def test_every_class_is_there() -> None:
    """Each operator's attributes are of a class of this module."""
    own = {one for one in _classes(OpAttrs) if one.__module__.startswith("tilewright.relay.op.")}
    assert {one.__name__ for one in own} == set(op_attrs.__all__)
    convolution = relay.nn.conv2d(relay.var("x"), relay.var("w"), kernel_size=(3, 3))
    assert isinstance(convolution.attrs, op_attrs.Conv2DAttrs)
    assert not isinstance(relay.nn.softmax(relay.var("x")).attrs, relay.op.op_attrs.Conv2DAttrs)
