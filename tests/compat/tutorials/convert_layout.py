"""ConvertLayout: a network in NCHW to NHWC, and the numbers stay."""

import numpy as np

import tvm
from tvm import relay

x = relay.var("x", shape=(1, 8, 8, 8))
w1, w2 = (relay.const(np.random.rand(8, 8, 3, 3).astype("float32")) for _ in range(2))
y = relay.nn.conv2d(x, w1, channels=8, kernel_size=(3, 3), padding=(1, 1))
y = relay.nn.relu(y)
y = relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
y = relay.nn.conv2d(y, w2, channels=8, kernel_size=(3, 3), padding=(1, 1))
y = relay.nn.bias_add(y, relay.const(np.random.rand(8).astype("float32")))
mod = tvm.IRModule.from_expr(relay.Function([x], y))

desired_layouts = {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]}
seq = tvm.transform.Sequential(
    [relay.transform.RemoveUnusedFunctions(), relay.transform.ConvertLayout(desired_layouts)]
)
with tvm.transform.PassContext(opt_level=3):
    converted = seq(mod)
text = converted.astext(show_meta_data=False)
assert text.count('data_layout="NHWC"') == 2 and 'kernel_layout="HWIO"' in text, text
# The data once on the way in; the bias, which is canonical before, as a tensor of four dimensions.
assert text.count('layout_transform(%x, src_layout="NCHW", dst_layout="NHWC")') == 1, text
assert text.count('src_layout="NCHW", dst_layout="NHWC"') == 2, text
assert text.count('src_layout="NHWC", dst_layout="NCHW"') == 1, text

data = np.random.rand(1, 8, 8, 8).astype("float32")
results = [
    relay.create_executor("graph", mod=m, target="llvm").evaluate()(data).numpy() for m in (mod, converted)
]
np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


# A layout rule of one's own for an operator, for a while.
def convert_conv2d(attrs, inputs, tinfos, desired_layouts):
    new_attrs = dict(attrs)
    new_attrs["data_layout"] = "NHWC"
    new_attrs["kernel_layout"] = "HWIO"
    return relay.nn.conv2d(*inputs, **new_attrs)


from tvm.relay.testing.temp_op_attr import TempOpAttr  # noqa: E402

with TempOpAttr("nn.conv2d", "FTVMConvertOpLayout", convert_conv2d):
    again = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod)
assert 'data_layout="NHWC"' in again.astext(show_meta_data=False)
