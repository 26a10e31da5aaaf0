"""What the reference interpreter computes for a model that was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.relay.interpreter import Interpreter

Array = np.ndarray[Any, Any]


def interpreted(
    module: Any, params: Mapping[str, Any], inputs: Mapping[str, Any] | Sequence[Any]
) -> list[Array]:
    """The outputs of ``main`` for inputs by name or in order; its other arguments are parameters of the model."""
    main = module["main"]
    names = [one.name_hint for one in main.params]
    if not isinstance(inputs, Mapping):
        inputs = dict(zip((name for name in names if name not in params), inputs, strict=True))
    values = [params[name].numpy() if name in params else np.asarray(inputs[name]) for name in names]
    made = Interpreter(module).run(main, values)
    return [np.asarray(one) for one in made] if isinstance(made, (list, tuple)) else [np.asarray(made)]
