"""``import tvm`` in a process that a program under ``tilewright.as_tvm`` started: gives Tilewright there, too."""

import importlib
import sys

if __name__ == "tvm":
    # The import that is under way takes what stands here when this module has run.
    del sys.modules[__name__]
    importlib.import_module("tilewright.as_tvm")
    importlib.import_module(__name__)
