"""Search policies: how the candidates that are measured are found.

``SketchPolicy`` derives sketches, samples programs of them, lets them evolve under a cost model, and measures the best.
The constructed schedule is measured first, as what a search has to beat; as states, with its own choices and with
others, it is part of the population.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tilewright.auto_scheduler.cost_model import CostModel, RandomModel
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.measure_record import load_records
from tilewright.auto_scheduler.measure_types import MeasureErrorNo, MeasureInput, MeasureResult
from tilewright.auto_scheduler.measurer import ProgramMeasurer
from tilewright.auto_scheduler.population.evolve import NO_PROGRAM, EvolutionOptions, evolve
from tilewright.auto_scheduler.population.sample import sample_state
from tilewright.auto_scheduler.population.seeds import constructed_states
from tilewright.auto_scheduler.population.settings import DEFAULT_PARAMS, Settings, complete_params
from tilewright.auto_scheduler.sketch import SketchRule, generate_sketches, sketch_rules
from tilewright.auto_scheduler.sketch.rule import CustomRule
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.support.errors import ScheduleError

logger = logging.getLogger("auto_scheduler")

_FIRST_SECONDS = 5.0
"""How long the first evolution may take; later ones, as long as measuring did."""

_CONFIRMED = 3
"""How many of the best candidates are measured again, in turns with the constructed schedule."""


class SearchCallback:
    """Prepares a policy before its search."""

    def apply(self, policy: Any) -> None:
        """Change the policy."""
        raise NotImplementedError(f"{type(self).__name__} has no method apply(policy)")


class PreloadMeasuredStates(SearchCallback):
    """Continues a search: what a file of records says was measured is not measured again, and takes part in
    evolution."""

    def __init__(self, filename: str) -> None:
        self.filename = str(filename)

    def apply(self, policy: SketchPolicy) -> None:
        policy.preload(self.filename)


class PreloadCustomSketchRule(SearchCallback):
    """A sketch rule of one's own, tried before the others.

    ``meet_condition_func(policy, state, stage_id)`` says whether it applies, ``apply_func(policy, state, stage_id)``
    gives pairs of a state and the stage to go on with; -1 ends the sketch.
    """

    PASS: ClassVar[int] = 0
    APPLY: ClassVar[int] = 1
    APPLY_AND_SKIP_REST: ClassVar[int] = 2

    def __init__(
        self,
        meet_condition_func: Callable[..., Any],
        apply_func: Callable[..., Any],
        rule_name: str = "CustomSketchRule",
    ) -> None:
        self.meet_condition_func = meet_condition_func
        self.apply_func = apply_func
        self.rule_name = rule_name

    def apply(self, policy: SketchPolicy) -> None:
        policy.custom_rules.append(
            CustomRule(policy, self.meet_condition_func, self.apply_func, self.rule_name)
        )


class SearchPolicy:
    """Finds candidates of one task, and has them measured."""

    def __init__(self, task: Any, verbose: int = 1) -> None:
        self.search_task = task
        self.verbose = verbose

    def set_verbose(self, verbose: int) -> None:
        """How much to print; 0 is nothing."""
        self.verbose = verbose

    def search(
        self,
        num_measure_trials: int,
        early_stopping: int,
        num_measures_per_round: int,
        measurer: ProgramMeasurer,
    ) -> State | None:
        """Search until so many candidates were measured; the fastest."""
        raise NotImplementedError

    def continue_search_one_round(
        self, num_measure: int, measurer: ProgramMeasurer
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Measure so many candidates more."""
        raise NotImplementedError

    def finish(self, measurer: ProgramMeasurer) -> None:
        """What is to be done when no more rounds follow."""


class EmptyPolicy(SearchPolicy):
    """Measures the program without any step: an example of a policy."""

    def __init__(self, task: Any, init_search_callbacks: Sequence[SearchCallback] | None = None) -> None:
        super().__init__(task)

    def search(
        self,
        num_measure_trials: int,
        early_stopping: int,
        num_measures_per_round: int,
        measurer: ProgramMeasurer,
    ) -> State | None:
        if num_measure_trials > 0:
            self.continue_search_one_round(1, measurer)
        plain: State = self.search_task.compute_dag.get_init_state()
        return plain

    def continue_search_one_round(
        self, num_measure: int, measurer: ProgramMeasurer
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        inputs = [MeasureInput(self.search_task, self.search_task.compute_dag.get_init_state())]
        return inputs, measurer.measure(self.search_task, self, inputs)


class SketchPolicy(SearchPolicy):
    """Sketches, random completion, evolution under a cost model.

    ``params`` are those of ``DEFAULT_PARAMS``, with TVM's names. With a ``seed``, the same candidates come in the same
    order from the same measurements.
    """

    DEFAULT_PARAMS = DEFAULT_PARAMS

    def __init__(
        self,
        task: Any,
        program_cost_model: CostModel | None = None,
        params: dict[str, Any] | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Sequence[SearchCallback] | SearchCallback | None = None,
    ) -> None:
        super().__init__(task, verbose)
        self.program_cost_model = RandomModel(seed) if program_cost_model is None else program_cost_model
        self.params = complete_params(params)
        self.settings = Settings.of(self.params)
        self.generator = random.Random(seed)
        self.custom_rules: list[SketchRule] = []
        self.measured: dict[Any, float] = {}
        """The throughput of each measured state, by its steps; zero for a failure."""
        self.states: dict[Any, StateObject] = {}
        self._sketches: list[StateObject] | None = None
        self._seeds: list[StateObject] | None = None
        self._measuring_seconds = _FIRST_SECONDS
        given = init_search_callbacks or ()
        for callback in [given] if isinstance(given, SearchCallback) else given:
            callback.apply(self)

    # -- sketches and populations ---------------------------------------------------------------------------------

    @property
    def sketches(self) -> list[StateObject]:
        """The sketches of the task."""
        if self._sketches is None:
            rules = [*self.custom_rules, *sketch_rules(self.search_task)]
            self._sketches = generate_sketches(self.search_task, rules)
        return self._sketches

    @property
    def seeds(self) -> list[StateObject]:
        """The constructed schedule as states."""
        if self._seeds is None:
            self._seeds = constructed_states(self.search_task)
        return self._seeds

    def _as_state(self, state: StateObject) -> State:
        return State(state, self.search_task.compute_dag)

    def generate_sketches(self, print_for_debug: bool = False) -> list[State]:
        """The sketches of the task, with the lengths of their tiles still open."""
        made = [self._as_state(sketch) for sketch in self.sketches]
        if print_for_debug:
            for number, state in enumerate(made):
                logger.warning("%s sketch %d %s\n%s", "=" * 20, number, "=" * 20, state)
        return made

    def sample_initial_population(self) -> list[State]:
        """Programs of the sketches, completed at random."""
        return [self._as_state(state) for state in self._sample()]

    def _sample(self) -> list[StateObject]:
        wanted = int(self.params["sample_init_min_population"])
        found: dict[Any, StateObject] = {}
        rounds_without = 0
        while len(found) < wanted:
            fresh = self._sample_batch(wanted)
            before = len(found)
            scores = self._scores(fresh) if fresh else []
            for state, score in zip(fresh, scores, strict=True):
                if score > NO_PROGRAM:
                    found.setdefault(state.transform_steps, state)
            rounds_without = rounds_without + 1 if len(found) == before else 0
            if rounds_without == 3:
                if wanted == 1:
                    raise ScheduleError(
                        f"no program could be sampled for {self.search_task.workload_key}: every choice of tile sizes "
                        "and places that was tried is invalid"
                    )
                # Small spaces have fewer programs than are asked for.
                wanted, rounds_without = wanted // 2, 0
        return list(found.values())

    def _sample_batch(self, count: int) -> list[StateObject]:
        made = []
        for _ in range(count):
            sketch = self.generator.choice(self.sketches)
            try:
                made.append(sample_state(self.search_task, sketch, self.settings, self.generator))
            except ScheduleError:
                # Tile sizes that do not fit a block, a place that is not around all readers.
                continue
        return made

    def _scores(self, states: Sequence[StateObject]) -> Sequence[float]:
        wrapped = [self._as_state(state) for state in states]
        scores: Sequence[float] = self.program_cost_model.predict(self.search_task, wrapped)
        return scores

    def evolutionary_search(
        self, init_populations: Sequence[State | StateObject], out_size: int
    ) -> list[State]:
        """The best states that evolve from others, by the cost model."""
        start = [state.state_object if isinstance(state, State) else state for state in init_populations]
        return [self._as_state(state) for state in self._evolve(start, out_size)]

    def _evolve(self, start: Sequence[StateObject], count: int) -> list[StateObject]:
        generations = int(self.params["evolutionary_search_num_iters"])
        options = EvolutionOptions(
            population=int(self.params["evolutionary_search_population"]),
            generations=min(2, generations) if self.program_cost_model.is_random else generations,
            mutation=float(self.params["evolutionary_search_mutation_prob"]),
            # Ranking should not take longer than measuring does.
            seconds=max(2.0, self._measuring_seconds),
        )
        return evolve(
            self.search_task,
            start,
            count,
            self._scores,
            set(self.measured),
            self.settings,
            options,
            self.generator,
        )

    # -- rounds ---------------------------------------------------------------------------------------------------

    def search(
        self,
        num_measure_trials: int,
        early_stopping: int,
        num_measures_per_round: int,
        measurer: ProgramMeasurer,
    ) -> State | None:
        if num_measure_trials <= 1:
            best = self._candidates(1)
            return self._as_state(best[0]) if best else None
        known = measurer.progress_of(self.search_task)
        done = 0
        while done < num_measure_trials:
            inputs, _ = self.continue_search_one_round(
                min(num_measures_per_round, num_measure_trials - done), measurer
            )
            done += len(inputs)
            if not inputs:
                if self.verbose:
                    logger.info("%s: all candidates were measured", self.search_task.workload_key)
                break
            if measurer.is_hopeless(self.search_task):
                break
            if 0 <= early_stopping < known.trials - known.best_trial and known.best_state is not None:
                break
        self.finish(measurer)
        return (
            self._as_state(getattr(known.best_state, "state_object", known.best_state))
            if known.best_state
            else None
        )

    def continue_search_one_round(
        self, num_measure: int, measurer: ProgramMeasurer
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        measurer.measure_untuned(self.search_task, self)
        inputs: list[MeasureInput] = []
        for _ in range(int(self.params["retry_search_one_round_on_empty"]) + 1):
            chosen = self._candidates(num_measure)
            inputs = [MeasureInput(self.search_task, self._as_state(state)) for state in chosen]
            if inputs:
                break
        if not inputs:
            return [], []
        starts = time.monotonic()
        results = measurer.measure(self.search_task, self, inputs)
        self._measuring_seconds = time.monotonic() - starts
        for measured, result in zip(inputs, results, strict=True):
            state = measured.state
            self._note(state.state_object if isinstance(state, State) else state, result)
        self.program_cost_model.update(inputs, results)
        return inputs, results

    def _note(self, state: StateObject, result: MeasureResult) -> None:
        self.measured[state.transform_steps] = (
            0.0 if result.error_no != MeasureErrorNo.NO_ERROR else 1.0 / result.mean
        )
        self.states[state.transform_steps] = state

    def _candidates(self, count: int) -> list[StateObject]:
        """States to measure: the best of evolution, and some at random."""
        sampled = self._sample()
        best_measured = sorted(self.measured, key=lambda steps: self.measured[steps], reverse=True)
        share = int(
            self.params["sample_init_use_measured_ratio"] * self.params["evolutionary_search_population"]
        )
        start = [*self.seeds, *sampled, *(self.states[steps] for steps in best_measured[:share])]
        at_random = min(int(count * float(self.params["eps_greedy"]) + 0.5), count - 1)
        # Scores that say nothing are not worth ranking many candidates.
        found = list(sampled) if self.program_cost_model.is_random else self._evolve(start, 2 * count)
        chosen: dict[Any, StateObject] = {}
        if not self.measured:
            # Nothing is known yet: the choices around the constructed schedule are the best guesses there are.
            for state in self.seeds[1 : 1 + count // 2]:
                chosen[state.transform_steps] = state
        for state in found:
            if len(chosen) >= count - at_random:
                break
            if state.transform_steps not in self.measured:
                chosen[state.transform_steps] = state
        rest = list(sampled)
        self.generator.shuffle(rest)
        for state in [*rest, *found]:
            if len(chosen) >= count:
                break
            if state.transform_steps not in self.measured:
                chosen.setdefault(state.transform_steps, state)
        return list(chosen.values())

    def preload(self, filename: str) -> None:
        """Take the states that a file of records has for this task as measured."""
        count = 0
        for measured, result in load_records(filename):
            same = (
                measured.task.workload_key == self.search_task.workload_key
                and measured.task.target.kind.name == self.search_task.target.kind.name
            )
            if not same:
                continue
            try:
                state = self.search_task.compute_dag.state_from_steps(measured.state.transform_steps)
            except ScheduleError as error:
                logger.warning("%s: a record does not fit the task: %s", filename, error.message)
                continue
            self._note(state.state_object, result)
            count += 1
        if self.verbose and count:
            logger.info("SketchPolicy: Loaded %d measurement records from %s", count, filename)

    def finish(self, measurer: ProgramMeasurer) -> None:
        """Measure the best candidates once more, in turns with the constructed schedule, until one is confirmed to be
        faster."""
        known = measurer.progress_of(self.search_task)
        limit = known.untuned.seconds if known.untuned is not None else 0.0
        ordered = sorted(self.measured, key=lambda steps: self.measured[steps], reverse=True)
        for steps in ordered[:_CONFIRMED]:
            if not self.measured[steps] or 1.0 / self.measured[steps] >= limit:
                return
            candidate = MeasureInput(self.search_task, self._as_state(self.states[steps]))
            if measurer.confirm(self.search_task, self, candidate) is not False:
                return
