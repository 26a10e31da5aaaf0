"""C source: the target ``c``, and the base of the other code generators that write source text."""
