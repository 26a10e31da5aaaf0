"""Operators as tensor expressions, for every target.

Each function takes and gives tensors (``te.Tensor``) of constant or symbolic shapes. The tag of a computation
(``topi.tag``) tells the schedules of a target what kind it is.
"""

from tilewright.topi import tag, utils
