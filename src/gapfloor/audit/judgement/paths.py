"""From stepped environments to evaluation paths: which are training, which are tests, on which levels."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.objects import guards_of
from gapfloor.audit.interpreter.values import Environment, Frame, Mark, describe
from gapfloor.audit.judgement.explore import StepEvent
from gapfloor.audit.judgement.heldout import (
    by_choice,
    has_other_parameters,
    is_served_alike,
    is_source_of_data,
    plays_the_same,
)
from gapfloor.audit.judgement.learning import LearningModel
from gapfloor.audit.judgement.levels import (
    EnvironmentLevels,
    differ,
    is_seeded,
    level_sets,
)
from gapfloor.audit.judgement.ranks import rank_marks
from gapfloor.audit.judgement.reporting import averages_over_updates, report_marks
from gapfloor.audit.judgement.rollouts import note_different_rules, settle_agent, split_tests
from gapfloor.audit.judgement.rules import RuleFinding, decide_rule
from gapfloor.audit.judgement.selections import LevelChoice, level_choice
from gapfloor.audit.reading.index import FunctionInfo, names_in, own_nodes, plain_names_in

_FLAG = re.compile(r"determin|greedy|stochastic|argmax|explor|(^|_)eps(ilon)?$|sample_action", re.IGNORECASE)
_GRADIENT = re.compile(
    r"log_?prob|neglogp|entropy|advantage|surrogate|policy_loss|pg_loss|actor_loss", re.IGNORECASE
)
_VALUE = re.compile(
    r"replay_?buffer|target_(q|net|model)|q_?(values?|network|net)$|dqn|td_(error|loss|target)", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class EvaluationPath:
    """One way in which a script plays an environment to measure a policy."""

    script: str
    rule: str
    provenance: str
    in_loop: bool | None
    evaluates_heldout: bool | None
    levels: str | None
    seeded_levels: bool | None
    same_procedure: bool | None
    agent: str | None
    inert_flags: tuple[str, ...]
    candidates: tuple[str, ...]
    evidence: tuple[Mark, ...]
    has_training: bool
    functions: tuple[str, ...] = ()
    """The functions through which the script comes to the step."""
    is_reached: bool = True
    """Whether a script reaches the step; a function that none reaches may be anybody's."""


@dataclass(frozen=True, eq=False)
class TrainingRollout:
    """One way in which a script plays an environment to learn from it."""

    script: str
    rule: str
    levels: str | None
    evidence: tuple[Mark, ...]


@dataclass(eq=False)
class Played:
    """A step event, judged: its rule, its levels and its place in learning."""

    event: StepEvent
    finding: RuleFinding
    sets: list[EnvironmentLevels]
    role: str
    """rollout (the environment lives on while weights change), fresh, or standalone (no learning in sight)."""
    agent: str | None
    loop_mark: Mark | None = None
    environments: list[Environment] = field(default_factory=list)
    is_pooled: bool = False
    """Whether fresh evaluations are averaged over several updates, so that in-loop is not decided."""
    is_ambiguous: bool = False
    """Whether a rollout might as well be an evaluation, so that no absence follows from it."""
    choice: LevelChoice | None = None
    """The level that is chosen when an episode begins."""
    has_other_rule: bool = False
    """Whether the same line follows another rule when it is reached through another call, which may be a test."""


class PathFinder:
    """Turns events into paths, script by script."""

    def __init__(self, evaluator: Evaluator, learning: LearningModel) -> None:
        self.evaluator = evaluator
        self.learning = learning
        self._kinds: dict[str, str | None] = {}
        self._rollouts: list[Played] = []
        self._served: list[Environment] = []
        """Environments that worker processes step for training."""
        self.is_complete = True
        """Whether every event could be judged."""

    def play(self, event: StepEvent) -> Played:
        """Judge one event."""
        finding = decide_rule(self.evaluator, event.actions)
        environments = [item.value for item in event.environments if isinstance(item.value, Environment)]
        sets: dict[tuple[object, ...], EnvironmentLevels] = {}
        for environment in environments:
            for item in level_sets(self.evaluator, environment):
                sets.setdefault((item.kind, item.key), item)
        found = [item for item in sets.values() if item.kind != "none"] or list(sets.values())
        role, mark, kind = self._role(event, environments)
        agent = "value-based" if finding.is_value_based and finding.primitives and kind is None else kind
        around = None if event.fact is not None else self.learning.learning_loop(event.frame, event.node)
        is_ambiguous = (
            role == "rollout"
            and around is not None
            and self.learning.is_ambiguous(event.frame, event.node, around[0])
        )
        is_pooled = (
            role == "fresh" and around is not None and averages_over_updates(*around, event.frame, event.node)
        )
        choice = level_choice(self.evaluator, event)
        return Played(event, finding, found, role, agent, mark, environments, is_pooled, is_ambiguous, choice)

    def _role(self, event: StepEvent, environments: list[Environment]) -> tuple[str, Mark | None, str | None]:
        mark = Mark(event.frame.module.path, event.node.lineno, "the dependency's own loop")
        if event.fact is not None:
            role = {"training": "rollout", "in-loop": "rollout", "evaluation": "fresh"}[event.fact.kind]
            return role, mark, None
        around = self.learning.learning_loop(event.frame, event.node)
        if around is None:
            is_collected = self.learning.collects_for_learning(event.frame, event.node)
            return ("rollout" if is_collected else "standalone"), None, None
        home, loop = around
        mark = Mark(
            home.module.path, getattr(loop, "lineno", 0), "learning loop: weights are updated in here"
        )
        makers: list[Environment | None] = [*environments] or [None]
        fresh = [self.learning.is_fresh(event.frame, event.node, item, home, loop) for item in makers]
        is_training = all(fresh) and self.learning.feeds_learning(event.frame, event.node, home)
        return ("fresh" if all(fresh) and not is_training else "rollout"), mark, self._kind(home.module.path)

    def _kind(self, path: str) -> str | None:
        """Policy gradient or value based, by the words of the file that holds the learning loop."""
        if path not in self._kinds:
            names = names_in(self.evaluator.index.modules[path].tree)
            has_gradient = any(_GRADIENT.search(name) for name in names)
            has_value = any(_VALUE.search(name) for name in names)
            self._kinds[path] = "policy-gradient" if has_gradient else "value-based" if has_value else None
        return self._kinds[path]

    def paths(
        self, events: list[StepEvent], served: list[tuple[Environment, Frame]]
    ) -> tuple[list[EvaluationPath], list[Played]]:
        """The evaluation paths of a repository, and its training rollouts."""
        self._served = [item for item, frame in served if self.learning.serves_learning(frame)]
        played = []
        for event in self._at_defaults(events):
            try:
                played.append(self.play(event))
            except RecursionError:
                self.is_complete = False
        # A random or a fixed policy and a recording are not an evaluation; a training rollout that begins with one
        # stays a rollout.
        played = [
            item
            for item in played
            if item.finding.rule not in ("random", "constant", "recorded") or item.role == "rollout"
        ]
        self._rollouts = [item for item in played if item.role == "rollout"]
        note_different_rules(self._rollouts)
        found: list[EvaluationPath] = []
        training: list[Played] = []
        for script in dict.fromkeys(item.event.script for item in played):
            here = [item for item in played if item.event.script == script]
            rollouts = [item for item in here if item.role == "rollout"]
            settle_agent(here, rollouts)
            train_sets, tests = split_tests(rollouts)
            training.extend(item for item in rollouts if item not in [one for one, _ in tests])
            elsewhere = [
                level for item in played if item.role == "rollout" for level in split_tests([item])[0]
            ]
            for item, level in tests:
                found.append(self._path(item, level, train_sets, rollouts, here, in_loop=True))
            for item in here:
                if item.role == "rollout":
                    continue
                for level in item.sets or [None]:  # type: ignore[list-item]
                    known = train_sets or elsewhere
                    found.append(self._path(item, level, known, rollouts, here, in_loop=False))
        return _merged(found), training

    def _at_defaults(self, events: list[StepEvent]) -> list[StepEvent]:
        """Without steps in a branch that settings at their defaults leave out, where the other branch steps as well.

        Only a choice inside a loop counts, which says how episodes are played; one outside says what a script is for.
        """
        taken: set[tuple[int, int]] = set()
        left_out: dict[int, set[tuple[int, int]]] = {}
        for event in events:
            chain = event.frame.chain()
            for position, frame in enumerate(chain):
                inner = event.node if frame is event.frame else chain[position + 1].call
                if inner is None or not self.learning.loops_around(frame, inner):
                    continue
                for guard in guards_of(frame, inner):
                    known, _ = self.evaluator.truth(guard.test, guard.frame)
                    key = (id(frame), id(guard.test))
                    if known is not None and known == guard.holds:
                        taken.add(key)
                    elif known is not None:
                        left_out.setdefault(id(event), set()).add(key)
        return [event for event in events if not left_out.get(id(event), set()) & taken]

    def describe_training(self, training: list[Played]) -> list[TrainingRollout]:
        """The training rollouts, for the reader who wants to see what the tests were compared with."""
        found: dict[tuple[object, ...], TrainingRollout] = {}
        for item in training:
            for level in item.sets or [None]:  # type: ignore[list-item]
                text = level.text if level is not None else None
                rollout = TrainingRollout(
                    item.event.script, item.finding.rule, text, self._evidence(item, level)
                )
                found.setdefault((rollout.script, rollout.rule, rollout.levels), rollout)
        return list(found.values())

    def _path(
        self,
        item: Played,
        level: EnvironmentLevels | None,
        train_sets: list[EnvironmentLevels],
        rollouts: list[Played],
        here: list[Played],
        *,
        in_loop: bool,
    ) -> EvaluationPath:
        provenance = item.finding.provenance
        if provenance == "unflagged":
            provenance = self._unflagged(item, rollouts or self._rollouts, in_loop=in_loop)
        heldout: bool | None = None
        if level is not None and train_sets:
            answers = {differ(level, other) for other in train_sets}
            heldout = answers.pop() if len(answers) == 1 else None
        if heldout is None and any(plays_the_same(item, other) for other in rollouts):
            heldout = False
        if heldout is None and not self._rollouts and is_served_alike(self.evaluator, item, self._served):
            heldout = False
        if (
            heldout is None
            and not rollouts
            and item.role == "fresh"
            and is_source_of_data(self.evaluator, item, level)
        ):
            heldout = False
        if heldout is not True:
            heldout = by_choice(item, rollouts or self._rollouts, heldout)
        if heldout is False and has_other_parameters(self.evaluator, item, rollouts):
            heldout = None
        seeded = {is_seeded(self.evaluator, environment) for environment in item.environments}
        if len(seeded) > 1:
            seeded.discard(None)  # another kind of environment than the one that has levels
        return EvaluationPath(
            script=item.event.script,
            rule=item.finding.rule,
            provenance=provenance if item.finding.rule != "unresolved" else "unresolved",
            in_loop=None if item.is_pooled or not _is_reached(item.event) else in_loop,
            evaluates_heldout=heldout,
            levels=level.text if level is not None else None,
            seeded_levels=seeded.pop() if len(seeded) == 1 else None,
            same_procedure=_same_procedure(item, level, here, rollouts, in_loop=in_loop),
            agent=item.agent,
            inert_flags=self._inert_flags(item),
            candidates=item.finding.candidates,
            evidence=self._evidence(item, level),
            has_training=bool(rollouts),
            functions=tuple(
                one.function.name for one in item.event.frame.chain() if one.function is not None
            ),
            is_reached=_is_reached(item.event),
        )

    def _unflagged(self, item: Played, rollouts: list[Played], *, in_loop: bool) -> str:
        if in_loop:
            return "training-rollout"
        shared = {id(one.node) for other in rollouts for one in other.finding.primitives}
        if any(id(one.node) in shared for one in item.finding.primitives):
            return "training-rollout"
        if all(one.frame.function is item.event.frame.function for one in item.finding.primitives):
            return "explicit-call-site"
        if not rollouts and item.role == "fresh" and item.finding.rule == "argmax":
            return "explicit-call-site"  # offline: nothing but the evaluation acts
        if rollouts and all(_acts_otherwise(item, other) for other in rollouts):
            return "explicit-call-site"  # the evaluation calls another method than training does
        if rollouts and all(self._is_told_otherwise(item, other) for other in rollouts):
            return (
                "explicit-call-site"  # the evaluation gives another literal to the method that training calls
            )
        return "unresolved"

    def _is_told_otherwise(self, item: Played, other: Played) -> bool:
        """Whether two steps act through one function, whose calls state different literals that its conditions read."""
        if item.finding.rule == other.finding.rule:
            return False
        ours = {one.frame.function: one.frame for one in item.finding.primitives}
        theirs = {one.frame.function: one.frame for one in other.finding.primitives}
        if len(ours) != 1 or ours.keys() != theirs.keys() or None in ours:
            return False
        function, frame = next(iter(ours.items()))
        assert function is not None
        read = {
            name
            for node in own_nodes(function.node)
            if isinstance(node, ast.If | ast.IfExp)
            for name in names_in(node.test)
        }
        other_frame = theirs[function]
        for name in read & frame.bindings.keys() & other_frame.bindings.keys():
            stated = [one.bindings[name].expression for one in (frame, other_frame)]
            if not frame.bindings[name].is_default and all(isinstance(one, ast.Constant) for one in stated):
                return ast.dump(stated[0]) != ast.dump(stated[1])  # type: ignore[arg-type]
        return False

    def _evidence(self, item: Played, level: EnvironmentLevels | None) -> tuple[Mark, ...]:
        event = item.event
        marks: list[Mark] = []
        for frame in event.frame.chain():
            marks.extend(frame.found_by)
            if frame.call is not None and frame.caller is not None:
                line = getattr(frame.call, "lineno", 0)
                marks.append(
                    Mark(
                        frame.caller.module.path,
                        line,
                        f"calls {frame.function.name if frame.function else ''}",
                    )
                )
        if item.loop_mark is not None:
            marks.append(item.loop_mark)
        if item.role != "rollout":
            marks.extend(
                mark for frame in event.frame.chain() for mark in self.learning.switches.marks(frame)
            )
        if level is not None:
            marks.extend(level.marks)
            marks.extend(rank_marks(self.evaluator, level.guards))
        if item.choice is not None and item.choice.mark is not None:
            marks.append(item.choice.mark)
        step = "environment stepped" if event.fact is None else "environment handed over"
        marks.append(Mark(event.frame.module.path, event.node.lineno, f"{step}: {describe(event.node.func)}"))
        marks.extend(item.finding.marks)
        marks.extend(report_marks(event.frame, event.node))
        return tuple(dict.fromkeys(mark for mark in marks if mark.line > 0))

    def _inert_flags(self, item: Played) -> tuple[str, ...]:
        found = []
        for frame in item.event.frame.chain():
            if frame.function is not None:
                found.extend(inert_parameters(frame.function))
        return tuple(dict.fromkeys(found))


def _acts_otherwise(item: Played, other: Played) -> bool:
    """Whether two steps choose their actions by different functions that are both known."""
    ours = {one.frame.function for one in item.finding.primitives}
    theirs = {one.frame.function for one in other.finding.primitives}
    return bool(ours and theirs) and not ours & theirs


def _is_reached(event: StepEvent) -> bool:
    root = event.frame.chain()[0]
    if root.function is None or root.module.is_script:
        return True
    # A framework calls what is decorated: sacred, hydra, click.
    return not isinstance(root.function.node, ast.Lambda) and bool(root.function.node.decorator_list)


def inert_parameters(function: FunctionInfo) -> list[str]:
    """Parameters that by their name choose the rule, and that the function never reads."""
    if isinstance(function.node, ast.Lambda):
        return []
    arguments = function.node.args
    flags = [
        argument
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        if _FLAG.search(argument.arg)
    ]
    # A stub that only documents or refuses has nothing to read its parameters with.
    if not flags or all(
        isinstance(statement, ast.Raise | ast.Expr | ast.Pass) for statement in function.node.body
    ):
        return []
    read = plain_names_in(function.node)
    return [
        f"{function.name}({argument.arg}) at {function.module.path}:{argument.lineno}"
        for argument in flags
        if argument.arg not in read
    ]


def _same_procedure(
    item: Played,
    level: EnvironmentLevels | None,
    here: list[Played],
    rollouts: list[Played],
    *,
    in_loop: bool,
) -> bool | None:
    """Whether the training levels are measured by the very same stepping code."""
    if level is None:
        return None
    twins = [other for other in here if other.event.node is item.event.node]
    others = [one for other in twins for one in other.sets if (one.kind, one.key) != (level.kind, level.key)]
    if others:
        return True
    return False if rollouts and not in_loop else None


def _merged(paths: list[EvaluationPath]) -> list[EvaluationPath]:
    """One path where several chains of calls say the same."""
    found: dict[tuple[object, ...], EvaluationPath] = {}
    for path in paths:
        key = (
            path.script,
            path.rule,
            path.provenance,
            path.in_loop,
            path.levels,
            path.evaluates_heldout,
            path.agent,
            path.candidates,
        )
        if key in found:
            older = found[key]
            merged = tuple(dict.fromkeys((*older.evidence, *path.evidence)))
            inert = tuple(dict.fromkeys((*older.inert_flags, *path.inert_flags)))
            found[key] = EvaluationPath(**{**vars(older), "evidence": merged, "inert_flags": inert})
        else:
            found[key] = path
    return list(found.values())
