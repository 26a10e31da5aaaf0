"""Graph tuners: choose one of the tuned configurations of each operator so that operators and the layout transforms
between them take the least time together."""

from tilewright.autotvm.graph_tuner import base_graph_tuner, dynamic_programming_tuner, pbqp_tuner, utils
from tilewright.autotvm.graph_tuner.base_graph_tuner import BaseGraphTuner
from tilewright.autotvm.graph_tuner.dynamic_programming_tuner import DPTuner
from tilewright.autotvm.graph_tuner.pbqp_tuner import PBQPTuner
