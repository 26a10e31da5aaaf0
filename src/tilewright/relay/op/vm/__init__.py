"""The operators that programs of the virtual machine call."""

from tilewright.relay.op.vm import vm
from tilewright.relay.op.vm.vm import invoke_tvm_op, reshape_tensor, shape_func, shape_of
