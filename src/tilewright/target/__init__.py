"""Target descriptions: what code is generated for, and what is known about the machine.

``Target`` with its kinds, options and tags; functions that make targets for families of devices; functions that
dispatch on the current target; and ``describe_cpu`` and ``describe_gpu``, the machine descriptions that schedules are
computed from.
"""

from tilewright.target import datatype, tag
from tilewright.target.constructors import (
    arm_cpu,
    bifrost,
    cuda,
    hexagon,
    intel_graphics,
    mali,
    micro,
    rasp,
    riscv_cpu,
    rocm,
    vta,
)
from tilewright.target.cpu import CPUDescription, describe_cpu, llvm_machine_options
from tilewright.target.generic_func import (
    GenericFunc,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)
from tilewright.target.gpu import GPUDescription, describe_gpu
from tilewright.target.kind import TargetKind
from tilewright.target.se_scope import SEScope, make_se_scope
from tilewright.target.tag import list_tags, register_tag
from tilewright.target.target import Target, create
