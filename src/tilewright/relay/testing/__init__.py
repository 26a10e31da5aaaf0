"""Models for tests and benchmarks, and helpers for tests of graph-level programs."""

from tilewright.relay.prelude import Prelude
from tilewright.relay.testing import (
    byoc,
    dcgan,
    densenet,
    dqn,
    inception_v3,
    init,
    layers,
    lenet,
    lstm,
    mlp,
    mobilenet,
    nat,
    resnet,
    resnet_3d,
    squeezenet,
    synthetic,
    temp_op_attr,
    transformer,
    tree_lstm,
    unet,
    vgg,
)
from tilewright.relay.testing.checking import (
    check_grad,
    count_ops,
    ctx_list,
    rand,
    run_infer_type,
    run_opt_pass,
)
from tilewright.relay.testing.init import create_workload
from tilewright.relay.testing.nat import add_nat_definitions, count, make_nat_expr, make_nat_value
from tilewright.relay.testing.py_converter import run_as_python, to_python
from tilewright.relay.transform import gradient
from tilewright.testing import enabled_targets
