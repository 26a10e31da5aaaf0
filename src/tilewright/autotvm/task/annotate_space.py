"""Annotations of loops as a knob: unrolled, vectorized, bound to the threads of a GPU; and places of caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, Final

from tilewright import te
from tilewright.autotvm.task.transform_space import InstantiationError, TransformSpace

_BINDINGS: Final[dict[str, list[list[str]]]] = {
    "bind_gpu": [
        [
            *("blockIdx.z", "blockIdx.y", "blockIdx.x"),
            *("threadIdx.z", "threadIdx.y", "threadIdx.x"),
        ],
        ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"],
        ["blockIdx.x", "threadIdx.x"],
    ],
    "bind_gpu_virtual": [
        [
            *("blockIdx.z", "blockIdx.y", "blockIdx.x", "vthread", "vthread", "vthread"),
            *("threadIdx.z", "threadIdx.y", "threadIdx.x"),
        ],
        ["blockIdx.y", "blockIdx.x", "vthread", "vthread", "threadIdx.y", "threadIdx.x"],
        ["blockIdx.x", "vthread", "threadIdx.x"],
    ],
}
_MAY_BE_NOTHING: Final = "try_"


class AnnotateEntity:
    """An annotation for each axis, or for ``locate_cache`` the position of an axis for each cache."""

    def __init__(self, anns: Sequence[Any]) -> None:
        self.anns = list(anns)

    def apply(
        self,
        sch: Any,
        op: Any,
        axes: Sequence[Any],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Sequence[Sequence[Any]] | None = None,
    ) -> list[Any]:
        """Annotate axes of a stage, or attach the tensors of ``source`` at them, and return the axes. An axis that is
        too long to unroll, or has none of the lengths ``vec_size``, is reported to ``cfg``."""
        made = list(axes)
        if source is not None:
            for tensors, place in zip(source, self.anns, strict=False):
                for tensor in tensors:
                    sch[tensor].compute_at(sch[op], made[place])
            return made
        for position, annotation in enumerate(self.anns):
            length = None if axis_lens is None else axis_lens[position]
            if annotation == "unroll":
                if max_unroll and length is not None and length > max_unroll:
                    _report(cfg, f"an axis of {length} is too long to unroll: the limit is {max_unroll}")
                sch[op].unroll(made[position])
            elif annotation == "vec":
                if vec_size and length is not None and length not in vec_size:
                    _report(cfg, f"an axis of {length} cannot be a vector: lengths are {list(vec_size)}")
                sch[op].vectorize(made[position])
            elif annotation == "fuse":
                made[position + 1] = sch[op].fuse(made[position], made[position + 1])
            elif annotation == "vthread" or annotation.startswith(("blockIdx.", "threadIdx.")):
                sch[op].bind(made[position], te.thread_axis(annotation))
            elif annotation != "none":
                raise InstantiationError(f"unknown annotation {annotation!r}")
        return made

    def __repr__(self) -> str:
        return str(self.anns)


def _report(cfg: Any, message: str) -> None:
    if cfg is None:
        raise InstantiationError(message)
    cfg.raise_error(message)


class AnnotateSpace(TransformSpace):
    """Annotations of axes, by a policy:

    * ``bind_gpu``, ``bind_gpu_virtual``: the innermost axes become blocks, (virtual threads,) and threads; the outer
      ones are fused;
    * ``locate_cache``: places for ``num_anchor`` caches;
    * ``unroll``, ``vec``, ``none`` and their combinations such as ``unroll_vec``: every axis is one of them;
      with ``try_`` in front, nothing is possible too. At most one axis is a vector.
    """

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        super().__init__()
        self.ins = list(axes)
        self.policy = policy
        self.num_output = len(axes)
        self.num_axis = len(axes)
        self.anns: list[Any] = []
        if policy in _BINDINGS:
            self.entities = [AnnotateEntity(self._bound())]
        elif policy == "locate_cache":
            places = combinations(range(self.num_axis), kwargs["num_anchor"])
            self.entities = [AnnotateEntity(place) for place in places]
        else:
            self.entities = [AnnotateEntity(choice) for choice in self._choices(_annotations_of(policy))]

    def _bound(self) -> list[str]:
        for names in _BINDINGS[self.policy]:
            if self.num_axis >= len(names):
                return ["fuse"] * (self.num_axis - len(names)) + names
        raise InstantiationError(
            f"{self.policy} needs at least {len(_BINDINGS[self.policy][-1])} axes, and there are {self.num_axis}"
        )

    def _choices(self, annotations: Sequence[str]) -> Iterator[tuple[str, ...]]:
        self.anns = [list(annotations) for _ in range(self.num_axis)]
        is_possible: Callable[[tuple[str, ...]], bool] = lambda choice: choice.count("vec") <= 1
        return filter(is_possible, product(*self.anns))

    @staticmethod
    def get_num_output(axes: Sequence[Any], policy: str, **kwargs: Any) -> int:
        """As many as there are."""
        return len(axes)

    def __repr__(self) -> str:
        return f"Annotate(policy={self.policy}) len={len(self)}"


def _annotations_of(policy: str) -> list[str]:
    names = policy.removeprefix(_MAY_BE_NOTHING).split("_")
    if not all(name in ("none", "unroll", "vec") for name in names):
        raise InstantiationError(
            f"unknown policy {policy!r} of an annotation: it is bind_gpu, bind_gpu_virtual, locate_cache, or made of "
            "none, unroll and vec, as in try_unroll_vec"
        )
    return (["none"] if policy.startswith(_MAY_BE_NOTHING) else []) + names
