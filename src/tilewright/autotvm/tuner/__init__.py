"""Tuners: random, exhaustive, genetic, and with a cost model of gradient-boosted trees."""

from tilewright.autotvm.tuner import callback
from tilewright.autotvm.tuner.ga_tuner import GATuner
from tilewright.autotvm.tuner.index_based_tuner import GridSearchTuner, RandomTuner
from tilewright.autotvm.tuner.tuner import Tuner
from tilewright.autotvm.tuner.xgboost_tuner import XGBTuner
