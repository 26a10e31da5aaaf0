"""Random programs of the graph level, for tests that compare executors.

``random_program(seed)`` gives a program that is valid, whose arguments keep every operator where it is well
conditioned, and what it computes. The same seed gives the same program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.relay.random_program import (
    elementwise,
    indexing,
    language,
    moving,
    network,
    reducing,
)
from tests.relay.random_program.evaluation import NoisyInterpreter, Value, tolerance
from tests.relay.random_program.generator import (
    ANYTHING,
    FLOATS,
    RECIPES,
    Generator,
    Program,
    Recipe,
)

__all__ = [
    "ANYTHING",
    "FLOATS",
    "RECIPES",
    "Generator",
    "NoisyInterpreter",
    "Program",
    "Recipe",
    "Value",
    "random_program",
    "tolerance",
]

STRUCTURE_SHARE = 0.12
"""How many steps are those of the language, in programs that have them."""


def random_program(
    seed: int,
    size: int = 12,
    structure: bool | None = None,
    recipes: Mapping[str, Sequence[Recipe]] | None = None,
) -> Program:
    """A program of about ``size`` calls.

    ``structure`` says whether it may have functions, branches, loops, references and lists; left out, a share of
    programs has them. ``recipes``, more of them by operator, count like those that are here.
    """
    generator = Generator(seed)
    allowed = generator.chance(0.4) if structure is None else structure
    calls = {name: list(made) for name, made in RECIPES.items() if not name.startswith("@")}
    for name, more in (recipes or {}).items():
        calls[name] = [*calls.get(name, []), *more]
    around = {name: made for name, made in RECIPES.items() if name.startswith("@")}
    count = generator.integer(1, size)
    while count > 0 or not generator.scopes[0].values:
        chosen = around if allowed and generator.chance(STRUCTURE_SHARE) else calls
        generator.step(chosen)
        count -= 1
    return generator.program()
