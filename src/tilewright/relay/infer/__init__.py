"""Type inference.

``infer_module`` returns a module in which every expression of every graph-level function has its ``checked_type``;
``infer_expr`` does the same for one expression, whose free variables carry their types.
"""

from tilewright.relay.infer.inference import infer_expr, infer_function, infer_module, type_of
from tilewright.relay.infer.solver import TypeInferenceError

__all__ = ["TypeInferenceError", "infer_expr", "infer_function", "infer_module", "type_of"]
