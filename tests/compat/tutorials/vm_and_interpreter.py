"""The virtual machine: compile, save, load, run; functions by name; profiles."""

import numpy as np

import tvm
from tvm import relay
from tvm.relay import vm
from tvm.runtime import vm as runtime_vm

x = relay.var("x", shape=(relay.Any(), 4))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.concatenate([x, x], 0))))
exe = relay.vm.compile(mod, target="llvm")
code, lib = exe.save()
assert isinstance(code, (bytes, bytearray)) and "invoke_packed" in exe.bytecode
from tvm.contrib import utils  # noqa: E402

temp = utils.tempdir()
lib.export_library(temp.relpath("lib.so"))
loaded = runtime_vm.Executable.load_exec(code, tvm.runtime.load_module(temp.relpath("lib.so")))
machine = runtime_vm.VirtualMachine(loaded, tvm.cpu())
data = np.random.rand(3, 4).astype("float32")
machine.set_input("main", data)
first = machine.run().numpy()
machine.invoke_stateful("main", data)
assert machine.get_outputs()[0].numpy().shape == (6, 4)
got = machine.run(tvm.nd.array(data)).numpy()
assert got.shape == (6, 4)
np.testing.assert_allclose(got, first)
assert machine.invoke("main", data).numpy().shape == (6, 4)
assert list(exe.globals) == ["main"]
assert exe.get_function_params("main") == ["x"]
print(exe.stats)

compiler = vm.VMCompiler()
compiler.lower(mod, "llvm")
compiler.codegen()
again = compiler.get_exec()
np.testing.assert_allclose(runtime_vm.VirtualMachine(again, tvm.cpu()).run(data).numpy(), got)
optimized, params = vm.VMCompiler().optimize(mod, target="llvm")
assert isinstance(optimized, tvm.IRModule)
print(machine.benchmark(tvm.cpu(), data, repeat=2, number=1))
