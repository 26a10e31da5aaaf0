"""A whole body becomes device code."""

from tilewright import tir
from tilewright.ir.module import IRModule
from tilewright.target import Target
from tilewright.tir.transform.decorate_device_scope import DecorateDeviceScope
from tilewright.tir.transform.split_host_device import SplitHostDevice


def test_the_body_is_cut_out():
    """The host is left with a call of the kernel."""
    a = tir.decl_buffer((1,), name="A")
    body = tir.Store(a.data, tir.const(0.0, "float32"), 0)
    function = tir.PrimFunc([a.data], body, attrs={"global_symbol": "f", "target": Target("ext_dev")})
    module = SplitHostDevice()(DecorateDeviceScope()(IRModule({"f": function})))
    assert module["f"].body.value.args[0].value == "f_kernel0"
    kernel = module["f_kernel0"]
    assert kernel.params == (a.data,) and kernel.body.attr_key == "device_scope"
