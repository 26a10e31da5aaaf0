"""Sketches: the structures of programs that a search fills in, derived stage by stage by rules."""

from tilewright.auto_scheduler.sketch.generate import generate_sketches, sketch_rules
from tilewright.auto_scheduler.sketch.rule import Condition, SketchRule

__all__ = ["Condition", "SketchRule", "generate_sketches", "sketch_rules"]
