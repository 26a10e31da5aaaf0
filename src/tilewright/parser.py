"""Reading graph-level programs from text, where programs written for TVM look for it."""

from tilewright.relay.from_text import fromtext, parse, parse_expr
from tilewright.relay.parser import SpanCheck

__all__ = ["SpanCheck", "fromtext", "parse", "parse_expr"]
