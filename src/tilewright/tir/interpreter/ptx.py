"""Tensor cores and asynchronous copies, as the threads of a block see them; ``tir.ptx`` says what each call means.

Asynchronous work is done when it is waited for, the latest moment that is allowed, and its destination holds garbage
until then: a program that forgets to wait, or overwrites what is still in use, gives wrong numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import numpy as np

from tilewright.ir.expr import Call, IntImm, PrimExpr, StringImm, Var
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter import float8
from tilewright.tir.interpreter.block import Meeting, MemoryBarrier, NamedBarrier, Stuck
from tilewright.tir.interpreter.expressions import ExpressionCompiler, Frame, Run
from tilewright.tir.interpreter.matrices import Descriptor, mma_result, wgmma_result
from tilewright.tir.interpreter.memory import Pointer
from tilewright.tir.interpreter.tensor_maps import MapOf, box_bytes, load_box, store_box
from tilewright.tir.interpreter.values import lane_type
from tilewright.tir.ptx_shapes import mma_k, registers, wgmma_k

StepsOf = Callable[[Frame], Iterator[Any]]
WARP: Final = 32
GROUP: Final = 128
_GARBAGE: Final = 0xFF


class Threads(Protocol):
    """What builders need of the compiler of a kernel."""

    tensor_maps: dict[Var, MapOf]

    def visit(self, node: Any) -> Any:
        """The closure of an expression."""

    def thread_number(self) -> Run:
        """The number of a thread within its block."""


def _arguments(compiler: Any, call: Call, first: int = 0) -> list[Run]:
    return [compiler.visit(argument) for argument in call.args[first:]]


def _name(call: Call, place: int) -> str:
    value = call.args[place]
    assert isinstance(value, StringImm)
    return value.value


def _integer(call: Call, place: int) -> int:
    value = call.args[place]
    assert isinstance(value, IntImm)
    return value.value


def bytes_at(pointer: Any, size: int, what: str) -> np.ndarray[Any, Any]:
    """Some bytes of memory, to read and to write."""
    if not isinstance(pointer, Pointer):
        raise TilewrightError(f"{what} does not point to memory: it is {pointer!r}")
    start, data = pointer.byte_offset, pointer.memory.data
    if start < 0 or start + size > data.size:
        raise TilewrightError(
            f"{what}: out of bounds: {pointer.memory.name} has {data.size} bytes, {size} bytes at {start} were accessed"
        )
    return data[start : start + size]


# Matrices of a warp


def _ldmatrix(compiler: Threads, call: Call) -> StepsOf:
    count, transposed, target, source = _arguments(compiler, call)
    number = compiler.thread_number()

    def steps(frame: Frame) -> Iterator[Any]:
        thread = number(frame)
        meeting: Meeting = yield from frame[0].meet(id(call), thread, WARP, source(frame))
        lane, size = thread % WARP, count(frame)
        made = bytes_at(target(frame), 4 * size, "the target of ldmatrix")
        for matrix in range(size):
            rows = [
                bytes_at(meeting.values[8 * matrix + row], 16, "a row of ldmatrix").view(np.uint16)
                for row in range(8)
            ]
            pair = np.array([_pick(rows, lane, place, transposed(frame)) for place in (0, 1)], np.uint16)
            made[4 * matrix : 4 * matrix + 4] = pair.view(np.uint8)

    return steps


def _pick(rows: list[Any], lane: int, place: int, transposed: int) -> Any:
    far, near = lane // 4, 2 * (lane % 4) + place
    return rows[near][far] if transposed else rows[far][near]


def _stmatrix(compiler: Threads, call: Call) -> StepsOf:
    count, transposed, target, source = _arguments(compiler, call)
    number = compiler.thread_number()

    def steps(frame: Frame) -> Iterator[Any]:
        thread = number(frame)
        size = count(frame)
        own = bytes_at(source(frame), 4 * size, "the source of stmatrix").view(np.uint16).copy()
        meeting: Meeting = yield from frame[0].meet(id(call), thread, WARP, own)
        lane = thread % WARP
        if lane < 8 * size:
            # Each of these threads writes the row whose address it gives.
            matrix, row = divmod(lane, 8)
            made = bytes_at(target(frame), 16, "a row of stmatrix").view(np.uint16)
            for column in range(8):
                far, near = (column, row) if transposed(frame) else (row, column)
                made[column] = meeting.values[4 * far + near // 2][2 * matrix + near % 2]
        # Nobody goes on before all rows are written.
        yield from frame[0].meet((id(call), "written"), thread, WARP, None)

    return steps


def _mma(compiler: Threads, call: Call) -> StepsOf:
    shape, a_type, b_type, c_type = (_name(call, place) for place in range(4))
    a, b, c = _arguments(compiler, call, 4)
    number, k = compiler.thread_number(), mma_k(shape)
    sizes = [4 * registers(16, k, a_type), 4 * registers(8, k, b_type), 4 * registers(16, 8, c_type)]

    def steps(frame: Frame) -> Iterator[Any]:
        thread = number(frame)
        views = [
            bytes_at(part(frame), size, "an operand of mma")
            for part, size in zip((a, b, c), sizes, strict=True)
        ]
        brought = tuple([view.copy() for view in views])
        meeting: Meeting = yield from frame[0].meet(id(call), thread, WARP, brought)
        if meeting.result is None:
            meeting.result = mma_result(meeting.values, shape, a_type, b_type, c_type)
        views[2][:] = meeting.result[thread % WARP]

    return steps


# Copies of one thread


def _cp_async(compiler: Threads, call: Call) -> Run:
    target, source, size, valid = _arguments(compiler, call)
    number = compiler.thread_number()

    def start(frame: Frame) -> int:
        count, length = size(frame), valid(frame)
        if not 0 <= length <= count:
            raise TilewrightError(f"cp_async: {length} of {count} bytes cannot be copied")
        made = bytes_at(target(frame), count, "the target of cp_async")
        if target(frame).byte_offset % count:
            raise TilewrightError(f"cp_async: the target is not aligned to {count} bytes")
        content = np.zeros(count, np.uint8)
        if length:
            content[:length] = bytes_at(source(frame), length, "the source of cp_async")
            if source(frame).byte_offset % count:
                raise TilewrightError(f"cp_async: the source is not aligned to {count} bytes")
        made[:] = _GARBAGE

        def copy() -> None:
            made[:] = content

        frame[0].groups_of("copy", number(frame)).started.append(copy)
        return 0

    return start


def _commit(kind: str) -> Callable[[Threads, Call], Run]:
    def build(compiler: Threads, call: Call) -> Run:
        number = compiler.thread_number()

        def commit(frame: Frame) -> int:
            frame[0].groups_of(kind, number(frame)).commit()
            return 0

        return commit

    return build


def _wait(kind: str) -> Callable[[Threads, Call], Run]:
    def build(compiler: Threads, call: Call) -> Run:
        unfinished, number = compiler.visit(call.args[0]), compiler.thread_number()

        def wait(frame: Frame) -> int:
            frame[0].groups_of(kind, number(frame)).finish(unfinished(frame))
            return 0

        return wait

    return build


def _copies_arrive(compiler: Threads, call: Call) -> Run:
    pointer, number = compiler.visit(call.args[0]), compiler.thread_number()

    def arrive(frame: Frame) -> int:
        groups, barrier = (
            frame[0].groups_of("copy", number(frame)),
            frame[0].barrier_at(pointer(frame), str(call.op)),
        )
        work = [one for group in groups.committed for one in group] + groups.started

        def finish() -> None:
            for one in work:
                one()
            barrier.update(1, 0)

        frame[0].engine.append(finish)
        return 0

    return arrive


# Barriers


def _init(compiler: Threads, call: Call) -> Run:
    pointer, count = _arguments(compiler, call)

    def init(frame: Frame) -> int:
        place, arrivals = pointer(frame), count(frame)
        bytes_at(place, 8, "a barrier")
        if arrivals < 1:
            raise TilewrightError(f"a barrier waits for at least one arrival, not {arrivals}")
        frame[0].barriers[id(place.memory), place.byte_offset] = MemoryBarrier(arrivals, arrivals)
        return 0

    return init


def _inval(compiler: Threads, call: Call) -> Run:
    pointer = compiler.visit(call.args[0])

    def forget(frame: Frame) -> int:
        frame[0].barrier_at(pointer(frame), "mbarrier_inval")
        del frame[0].barriers[id(pointer(frame).memory), pointer(frame).byte_offset]
        return 0

    return forget


def _arrive(compiler: Threads, call: Call) -> Run:
    pointer = compiler.visit(call.args[0])
    size = compiler.visit(call.args[1]) if len(call.args) > 1 else None

    def arrive(frame: Frame) -> int:
        barrier = frame[0].barrier_at(pointer(frame), "mbarrier_arrive")
        barrier.update(1, 0 if size is None else size(frame))
        return 0

    return arrive


def _arrive_in_cluster(compiler: Threads, call: Call) -> Run:
    pointer, rank, _ = _arguments(compiler, call)

    def arrive(frame: Frame) -> int:
        if rank(frame) != 0:
            raise TilewrightError("a cluster of several blocks cannot be simulated", span=call.span)
        frame[0].barrier_at(pointer(frame), "mbarrier_arrive_cluster").update(1, 0)
        return 0

    return arrive


def _mbarrier_wait(compiler: Threads, call: Call) -> StepsOf:
    pointer, parity = _arguments(compiler, call)

    def steps(frame: Frame) -> Iterator[Any]:
        barrier = frame[0].barrier_at(pointer(frame), "mbarrier_wait")
        wanted = int(parity(frame))
        stuck = Stuck()
        while barrier.parity == wanted:
            yield stuck

    return steps


def _named(wait: bool) -> Callable[[Threads, Call], StepsOf]:
    def build(compiler: Threads, call: Call) -> StepsOf:
        which, threads = _arguments(compiler, call)

        def steps(frame: Frame) -> Iterator[Any]:
            barrier = frame[0].named.setdefault(which(frame), NamedBarrier())
            phase = barrier.phase
            barrier.arrive(threads(frame))
            stuck = Stuck()
            while wait and barrier.phase == phase:
                yield stuck

        return steps

    return build


# Bulk tensor copies


def _bulk_load(compiler: Threads, call: Call) -> Run:
    rank, flags = (_integer(call, place) for place in (0, 1))
    target, barrier = compiler.visit(call.args[2]), compiler.visit(call.args[4])
    described = _map_of(compiler, call, call.args[3])
    source = compiler.visit(call.args[3])
    coordinates = [compiler.visit(one) for one in call.args[5 : 5 + rank]]
    if flags & 1:
        raise TilewrightError("a copy to several blocks of a cluster cannot be simulated", span=call.span)

    def start(frame: Frame) -> int:
        layout = described(frame)
        size = box_bytes(layout)
        made = bytes_at(target(frame), size, "the target of bulk_tensor_load")
        place, at = target(frame), [int(one(frame)) for one in coordinates]
        waiting, tensor = frame[0].barrier_at(barrier(frame), "bulk_tensor_load"), source(frame)
        made[:] = _GARBAGE

        def copy() -> None:
            load_box(layout, tensor, at, place)
            waiting.update(0, -size)

        frame[0].engine.append(copy)
        return 0

    return start


def _bulk_store(compiler: Threads, call: Call) -> Run:
    rank = _integer(call, 0)
    described = _map_of(compiler, call, call.args[1])
    tensor, source = compiler.visit(call.args[1]), compiler.visit(call.args[2])
    coordinates = [compiler.visit(one) for one in call.args[3 : 3 + rank]]
    number = compiler.thread_number()

    def start(frame: Frame) -> int:
        layout, target, place = described(frame), tensor(frame), source(frame)
        at = [int(one(frame)) for one in coordinates]
        work = frame[0].groups_of("store", number(frame))
        work.started.append(lambda: store_box(layout, target, at, place))
        return 0

    return start


def _map_of(compiler: Threads, call: Call, var: PrimExpr) -> MapOf:
    found = compiler.tensor_maps.get(var) if isinstance(var, Var) else None
    if found is None:
        raise TilewrightError(f"{var} is not a tensor map: it has no attribute tensor_map", span=call.span)
    return found


# Products of a group of four warps


def _descriptor(compiler: Threads, call: Call) -> Run:
    source, leading, stride, swizzle = _arguments(compiler, call)
    return lambda frame: Descriptor(source(frame), leading(frame), stride(frame), swizzle(frame))


def _wgmma(compiler: Threads, call: Call) -> StepsOf:
    n, flags = (_integer(call, place) for place in (0, 4))
    a_type, b_type, c_type = (_name(call, place) for place in (1, 2, 3))
    a, b, c, scale = _arguments(compiler, call, 5)
    number = compiler.thread_number()
    a_size = 4 * registers(64, wgmma_k(a_type), a_type, GROUP)
    c_size = 4 * registers(64, n, c_type, GROUP)

    def steps(frame: Frame) -> Iterator[Any]:
        thread = number(frame)
        left = a(frame)
        if flags & 1:
            left = bytes_at(left, a_size, "the left operand of wgmma").copy()
        brought = (left, b(frame))
        meeting: Meeting = yield from frame[0].meet(id(call), thread, GROUP, brought)
        total = bytes_at(c(frame), c_size, "the result of wgmma")
        keep = int(scale(frame))

        def multiply() -> None:
            if meeting.result is None:
                meeting.result = wgmma_result(meeting.values, n, a_type, b_type, c_type, flags)
            kind = {"float32": np.float32, "float16": np.float16, "int32": np.int32}[c_type]
            old = total.view(kind)
            made = meeting.result[thread % GROUP] + (old.astype(np.float64) if keep else 0)
            old[:] = made.astype(np.int64).astype(np.int32) if c_type == "int32" else made.astype(kind)

        frame[0].groups_of("product", thread).started.append(multiply)

    return steps


# Threads, and what has no effect here


def _elect(compiler: Threads, call: Call) -> Run:
    number = compiler.thread_number()
    return lambda frame: number(frame) % WARP == 0


def _zero(compiler: Threads, call: Call) -> Run:
    return lambda frame: 0


def _float8(compiler: Threads, call: Call) -> Run:
    value, kind = compiler.visit(call.args[0]), _name(call, 1)
    lanes = call.dtype.lanes
    if str(call.op.name) == "tir.ptx_float8_decode":
        return lambda frame: float8.decode(value(frame), kind)[()]

    def encode(frame: Frame) -> Any:
        if lanes == 1:
            return float8.encode(value(frame), kind)
        return np.array([float8.encode(one, kind) for one in value(frame)], lane_type(call.dtype))

    return encode


STEPS: Final[dict[str, Callable[[Threads, Call], StepsOf]]] = {
    "tir.ptx_ldmatrix": _ldmatrix,
    "tir.ptx_stmatrix": _stmatrix,
    "tir.ptx_mma": _mma,
    "tir.ptx_mbarrier_wait": _mbarrier_wait,
    "tir.ptx_barrier_sync": _named(wait=True),
    "tir.ptx_barrier_arrive": _named(wait=False),
    "tir.ptx_wgmma": _wgmma,
}
"""Calls in which threads wait for one another: generators."""

_CALLS: Final[dict[str, Callable[[Threads, Call], Run]]] = {
    "ptx_cp_async": _cp_async,
    "ptx_cp_async_commit": _commit("copy"),
    "ptx_cp_async_wait": _wait("copy"),
    "ptx_cp_async_mbarrier_arrive": _copies_arrive,
    "ptx_mbarrier_init": _init,
    "ptx_mbarrier_inval": _inval,
    "ptx_mbarrier_arrive": _arrive,
    "ptx_mbarrier_arrive_expect_tx": _arrive,
    "ptx_mbarrier_arrive_cluster": _arrive_in_cluster,
    "ptx_bulk_tensor_load": _bulk_load,
    "ptx_bulk_tensor_store": _bulk_store,
    "ptx_bulk_commit": _commit("store"),
    "ptx_bulk_wait": _wait("store"),
    "ptx_wgmma_descriptor": _descriptor,
    "ptx_wgmma_commit": _commit("product"),
    "ptx_wgmma_wait": _wait("product"),
    "ptx_elect_sync": _elect,
    "ptx_float8_encode": _float8,
    "ptx_float8_decode": _float8,
    **dict.fromkeys(
        (
            *(
                "ptx_fence_proxy_async",
                "ptx_fence_mbarrier_init",
                "ptx_prefetch_tensor_map",
                "ptx_wgmma_fence",
            ),
            *("ptx_set_max_registers", "ptx_cluster_rank", "ptx_cluster_arrive", "ptx_cluster_wait"),
            *("ptx_grid_wait", "ptx_grid_launch"),
        ),
        _zero,
    ),
}

_BUILDERS: dict[str, Any] = dict(_CALLS)
ExpressionCompiler.calls.update(_BUILDERS)
