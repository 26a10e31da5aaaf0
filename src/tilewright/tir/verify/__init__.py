"""The verifier: the invariants of loop-level programs, as small named checks.

Under ``TILEWRIGHT_CHECK=1`` the pass manager has every function verify itself after every pass.
"""

from tilewright.tir.verify.verifier import verify, verify_module, verify_piece

__all__ = ["verify", "verify_module", "verify_piece"]
