"""The operators of the graph level, one definition each, by family."""

from tilewright.relay.op import (
    algorithm,
    annotation,
    contrib,
    dyn,
    image,
    memory,
    nn,
    random,
    reduce,
    tensor,
    transform,
    vision,
    vm,
)
from tilewright.relay.op.algorithm import *  # noqa: F403
from tilewright.relay.op.annotation.debug import debug
from tilewright.relay.op.op import (
    OpImplementation,
    OpPattern,
    OpSpecialization,
    OpStrategy,
    get,
    register,
    register_alter_op_layout,
    register_broadcast_schedule,
    register_compute,
    register_convert_op_layout,
    register_external_compiler,
    register_fake_quantization_to_integer,
    register_gradient,
    register_infer_correct_layout,
    register_injective_schedule,
    register_legalize,
    register_mixed_precision_conversion,
    register_pattern,
    register_reduce_schedule,
    register_schedule,
    register_shape_func,
    register_stateful,
    register_strategy,
)
from tilewright.relay.op.reduce import *  # noqa: F403
from tilewright.relay.op.tensor import *  # noqa: F403
from tilewright.relay.op.transform import *  # noqa: F403
