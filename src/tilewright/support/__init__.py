"""The bottom of the house: node decorator, data types, spans, errors, options. Imports nothing above."""

from tilewright.support.cbuild import libinfo

__all__ = ["libinfo"]
