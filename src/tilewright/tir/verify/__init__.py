"""The verifier: the invariants of loop-level programs, as small named checks.

Importing this registers it with the pass manager, which runs it after every pass under ``TILEWRIGHT_CHECK=1``.
"""

from tilewright.tir.verify.verifier import verify, verify_module

__all__ = ["verify", "verify_module"]
