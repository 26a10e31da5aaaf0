"""Chooses a tuned configuration for each operator of a graph, so that the whole takes the least time.

The nodes are target operators, whose states are their tuned configurations, and operators with several inputs, which
run in the layout of their first. Where the result of one has another layout than the next needs, a layout transform is
paid for.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from tilewright import te
from tilewright.autotvm.graph_tuner._base import INVALID_LAYOUT_TIME
from tilewright.autotvm.graph_tuner.layouts import get_infer_layout, layout_transform
from tilewright.autotvm.graph_tuner.utils import bind_inputs, expr2graph, get_in_nodes
from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult, Runner
from tilewright.autotvm.measure.measure_methods import LocalBuilder, LocalRunner, RPCRunner, measure_option
from tilewright.autotvm.task.records import Record, encode, load_from_file
from tilewright.autotvm.task.space import ConfigEntity
from tilewright.autotvm.task.task import Task, create
from tilewright.autotvm.task.workload import serialize_args
from tilewright.autotvm.tuner.index_based_tuner import GridSearchTuner
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.search.outcomes import typical
from tilewright.search.records import RecordFile
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target
from tilewright.topi.nn.blocked_layouts import Shaped

Workload = tuple[Any, ...]


class State:
    """One way to compute a node: its seconds, the layouts of what it reads and of its result, and its record."""

    def __init__(self, seconds: float, before: Shaped, after: Shaped, record: Record | None) -> None:
        self.seconds = seconds
        self.before = before
        self.after = after
        self.record = record


class BaseGraphTuner(ABC):
    """Plans a graph: give it records of its operators, have layout transforms measured with
    ``benchmark_layout_transform``, and ``run`` it."""

    def __init__(
        self,
        graph: Any,
        input_shapes: Mapping[str, Sequence[int]],
        records: Any,
        target_ops: Sequence[Any],
        target: Any,
        max_sch_num: int = 20,
        dtype: str = "float32",
        verbose: bool = True,
        log_file: str = "graph_tuner.log",
        log_level: int = logging.DEBUG,
        name: str = "graph_tuner",
    ) -> None:
        self._target = target if isinstance(target, Target) else Target(target)
        self._target_ops = [op if isinstance(op, Op) else Op.get(str(op)) for op in target_ops]
        self._input_shapes = dict(input_shapes)
        self._max_sch_num = max_sch_num
        self._dtype = dtype
        self._logger = logging.getLogger(f"autotvm.{name}")
        self._logger.setLevel(log_level)
        function = graph["main"] if isinstance(graph, IRModule) else graph
        self._graph = bind_inputs(function, self._input_shapes, dtype)
        self._node_list: list[dict[str, Any]] = []
        expr2graph(self._graph, self._target_ops, {}, self._node_list, self._target)
        self._in_nodes_dict = get_in_nodes(self._node_list, self._target_ops, self._input_shapes)
        self._records = list(load_from_file(records) if isinstance(records, (str, Path)) else records)
        self._states: dict[int, list[State]] = {}
        self._layout_transform_perf_records: dict[Workload, Record] = {}
        self._optimal_record_dict: dict[int, int] = {}
        self._find_states()

    @property
    def layout_transform_perf_records(self) -> dict[Workload, Record]:
        """The seconds of each layout transform, by its workload."""
        return self._layout_transform_perf_records

    def _find_states(self) -> None:
        """The states of every node: inputs have the original layout."""
        for place in sorted({one for key, above in self._in_nodes_dict.items() for one in (key, *above)}):
            node = self._node_list[place]
            if place not in self._in_nodes_dict:
                shaped = (_shape_of(node), "NCHW")
                self._states[place] = [State(0.0, shaped, shaped, None)]
            elif node["op"] in self._target_ops:
                self._states[place] = self._states_of_records(node)
            else:
                first = self._states[self._in_nodes_dict[place][0]]
                layouts = dict.fromkeys(state.after for state in first)
                self._states[place] = [State(0.0, shaped, shaped, None) for shaped in layouts]

    def _states_of_records(self, node: dict[str, Any]) -> list[State]:
        workloads = node["workloads"]
        if not workloads:
            raise TilewrightError(f"{node['name']} is not a task of the target {self._target}")
        fitting = [
            (inp, res) for inp, res in self._records if res.error_no == 0 and inp.task.workload in workloads
        ]
        if not fitting:
            raise TilewrightError(
                f"there are no records of {node['name']}, whose workload is {workloads[0]}: tune it first"
            )
        best: dict[tuple[str, str], State] = {}
        for inp, res in sorted(fitting, key=lambda record: typical(record[1].costs))[: self._max_sch_num]:
            (before,), (after,) = get_infer_layout(inp.task.name)(inp.task.workload, inp.config)
            # Of configurations with the same layouts only the fastest can be the best.
            best.setdefault((before[1], after[1]), State(typical(res.costs), before, after, (inp, res)))
        return list(best.values())

    def _iterate_layout_transform(self) -> list[tuple[Shaped, str]]:
        """Every transform that some plan needs: the shape and layout before, and the layout after."""
        found: dict[tuple[Shaped, str], None] = {}
        for place, above in self._in_nodes_dict.items():
            for one in above:
                for source in self._states[one]:
                    for reader in self._states[place]:
                        wanted = reader.before[1]
                        if source.after[1] != wanted and len(source.after[0]) >= 4:
                            found.setdefault((source.after, wanted))
        return list(found)

    def benchmark_layout_transform(
        self,
        min_exec_num: int = 100,
        timeout: float = 10,
        use_rpc: bool = False,
        device_key: str | None = None,
        host: str = "127.0.0.1",
        port: int = 9190,
        n_parallel: int = 1,
        build_func: str = "default",
        layout_records: Any = None,
        target_host: Any = None,
        infer_layout: bool = False,
        runner: Runner | None = None,
    ) -> None:
        """Measure the layout transforms between all states. Those of ``layout_records`` are known; with
        ``infer_layout`` the others are computed from these, by the element."""
        if use_rpc and runner is None:
            if device_key is None:
                raise TilewrightError("use_rpc measures on devices of a tracker: give their device_key")
            runner = RPCRunner(
                device_key, host, port, n_parallel=n_parallel, timeout=timeout, number=min_exec_num, repeat=1
            )
        known: dict[Workload, Record] = {}
        if layout_records is not None:
            given = (
                load_from_file(layout_records) if isinstance(layout_records, (str, Path)) else layout_records
            )
            known = {inp.task.workload: (inp, res) for inp, res in given if res.error_no == 0}
        if infer_layout and not known:
            raise TilewrightError("infer_layout computes transforms from layout_records, and there are none")
        rate = _seconds_an_element(known.values()) if infer_layout else 0.0
        measure = measure_option(
            LocalBuilder(timeout, n_parallel, build_func=build_func),
            runner or LocalRunner(timeout, number=min_exec_num, repeat=1),
        )
        for (shape, before), after in self._iterate_layout_transform():
            args = serialize_args([te.placeholder(shape, self._dtype), before, after])
            workload = ("layout_transform", *args)
            if workload in known and not infer_layout:
                record = known[workload]
            elif infer_layout:
                record = self._inferred(workload, prod(shape) * rate)
            else:
                record = self._measured(args, measure)
            self._layout_transform_perf_records[workload] = record

    def _inferred(self, workload: Workload, seconds: float) -> Record:
        task = Task(workload[0], workload[1:])
        config = ConfigEntity(0, None, {}, [])
        return MeasureInput(self._target, task, config), MeasureResult((seconds,), 0, -1, -1)

    def _measured(self, args: tuple[Any, ...], measure: dict[str, Any]) -> Record:
        task = create("layout_transform", args, self._target)
        found: list[Record] = []
        GridSearchTuner(task).tune(
            1, measure, callbacks=[lambda _, inputs, results: found.extend(zip(inputs, results, strict=True))]
        )
        return found[0]

    def _transform_seconds(self, source: State, reader: State) -> float:
        before, after = source.after, reader.before
        if before[1] == after[1] or len(before[0]) < 4:
            return 0.0
        args = serialize_args([te.placeholder(before[0], self._dtype), before[1], after[1]])
        record = self._layout_transform_perf_records.get(("layout_transform", *args))
        if record is None:
            raise TilewrightError("call benchmark_layout_transform before run")
        return typical(record[1].costs) if record[1].error_no == 0 else INVALID_LAYOUT_TIME

    def problem(
        self,
    ) -> tuple[list[int], list[list[float]], dict[tuple[int, int], list[list[float]]]]:
        """The nodes, the seconds of each state, and for each pair of connected nodes those of the transforms."""
        places = sorted(self._states)
        numbers = {place: number for number, place in enumerate(places)}
        costs = [[state.seconds for state in self._states[place]] for place in places]
        pairs: dict[tuple[int, int], list[list[float]]] = {}
        for place, above in self._in_nodes_dict.items():
            for one in above:
                rows = [
                    [self._transform_seconds(source, reader) for reader in self._states[place]]
                    for source in self._states[one]
                ]
                pairs[numbers[one], numbers[place]] = rows
        return places, costs, pairs

    @abstractmethod
    def solve(
        self,
        costs: Sequence[Sequence[float]],
        pairs: Mapping[tuple[int, int], Sequence[Sequence[float]]],
    ) -> list[int]:
        """The state of each node with which the sum of all costs is least."""

    def run(self, **kwargs: Any) -> None:
        """Find the plan."""
        places, costs, pairs = self.problem()
        self._optimal_record_dict = dict(zip(places, self.solve(costs, pairs), strict=True))
        total = sum(row[state] for row, state in zip(costs, self._optimal_record_dict.values(), strict=True))
        self._logger.info("%d nodes take %.6f s without layout transforms", len(places), total)

    def get_optimal_records(self) -> list[Record]:
        """The chosen record of each target operator, in the order of the graph."""
        if not self._optimal_record_dict:
            raise TilewrightError("there is no plan yet: call run first")
        chosen = [self._states[place][state] for place, state in self._optimal_record_dict.items()]
        return [state.record for state in chosen if state.record is not None]

    def write_opt_sch2record_file(self, record_file: str = "graph_opt_schedule.log") -> None:
        """Write the plan, for ``autotvm.apply_graph_best``."""
        Path(record_file).unlink(missing_ok=True)
        RecordFile(record_file).append([encode(inp, res) for inp, res in self.get_optimal_records()])


def _shape_of(node: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(extent) for extent in node["types"][0].shape)


def _seconds_an_element(records: Any) -> float:
    seconds = elements = 0.0
    for inp, res in records:
        elements += prod(inp.task.workload[1][1])
        seconds += res.costs[0]
    return seconds / elements


__all__ = ["BaseGraphTuner", "get_infer_layout", "layout_transform"]
