"""Models of how fast a program is, which rank candidates before anything is compiled."""

from tilewright.auto_scheduler.cost_model.cost_model import CostModel, PythonBasedModel, RandomModel
from tilewright.auto_scheduler.cost_model.xgb_model import XGBModel

__all__ = ["CostModel", "PythonBasedModel", "RandomModel", "XGBModel"]
