"""Evaluation paths: one row per way in which a script measures a policy, each answer with its level of evidence.

An answer is *proved* when every step that leads to it was resolved, *likely* when some step was assumed (a method was
matched by its name, a role was guessed), and *open* when there is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gapfloor.audit.interpreter import calls
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.facts import Fact, find_actor, words
from gapfloor.audit.interpreter.library import by_fact, flagged
from gapfloor.audit.interpreter.values import Alternative, Mark, describe
from gapfloor.audit.judgement.learning import Role, Updates, decide_role, given_flags
from gapfloor.audit.judgement.levels import NOT_MADE, PlayedLevels, chosen_levels, differ, is_draw, level_sets
from gapfloor.audit.judgement.rules import RuleFinding, decide_rule
from gapfloor.audit.judgement.sites import Play
from gapfloor.audit.judgement.verdict import FIELDS, LEVELS, VALUE_BASED, EvaluationPath, TrainingRollout
from gapfloor.audit.reading.index import FunctionInfo, last_name, own_nodes, parent_of, plain_names_in


@dataclass(eq=False)
class Judged:
    """A play with its rule, its role and its level sets."""

    play: Play
    finding: RuleFinding
    role: Role
    sets: list[PlayedLevels]
    chosen: frozenset[str]
    """What chooses its levels when an episode begins, as it is written."""

    def chooses_unlike(self, rollouts: list[Judged]) -> bool:
        """Whether levels are chosen when an episode begins, otherwise than in training."""
        return any(self.chosen != other.chosen for other in rollouts) or bool(self.chosen and not rollouts)

    @property
    def environments(self) -> set[tuple[int, int]]:
        """The environments that are played, by the calls that make them."""
        made = [item.value for item in self.play.environments]
        return {(id(one.call), id(one.frame)) for one in made if isinstance(one, v.Environment)}


def _judge(play: Play, updates: Updates) -> Judged | None:
    """The rule, the role and the level sets of one play; None for a library's evaluation of no environment."""
    play.frame.evaluator.begin_chain()
    fact = play.site.fact
    if fact is None:
        finding = decide_rule(_through_wrappers(play))
        role = decide_role(updates, play)
    else:
        is_evaluation = fact.kind == "evaluation"
        if _is_given_nothing(play, fact) and (is_evaluation or fact.kind == "in-loop"):
            return None
        mark = Mark(play.frame.module.path, play.site.call.lineno, f"{fact.name}: {fact.source}")
        finding = decide_rule(_actions_of_fact(play, fact, mark))
        kind = "evaluation" if is_evaluation else "rollout"
        role = Role(kind, True, score=4 * is_evaluation, is_fresh=is_evaluation, marks=[mark])
    sets = [level for item in play.environments for level in level_sets(item)]
    return Judged(play, finding, role, sets, chosen_levels(play))


def _is_given_nothing(play: Play, fact: Fact) -> bool:
    """Finds the environments that are handed to a library's own loop; whether it is None instead."""
    call, frame = play.site.call, play.frame
    given, home = calls.argument(call, fact.environment, fact.position), frame
    if fact.environment_at == "constructor" and isinstance(call.func, ast.Attribute):
        for item in frame.evaluate(call.func.value):
            if isinstance(item.value, v.ExternalObject):
                given = calls.argument(item.value.call, fact.environment, fact.position)
                home = item.value.frame
    values = home.evaluate(given) if given is not None else ()
    if given is not None:
        play.environments = [*calls.environments_of(given, home)]
    is_none = [isinstance(item.value, v.KnownValue) and item.value.value is None for item in values]
    return bool(is_none) and all(is_none) and not play.environments


def _actions_of_fact(play: Play, fact: Fact, mark: Mark) -> tuple[Alternative, ...]:
    call, frame = play.site.call, play.frame
    if fact.rule is not None:
        return (Alternative(v.Action(fact.rule, call, frame, True), marks=(mark,)),)
    given = calls.argument(call, fact.actor, fact.actor_position) if fact.actor else None
    kinds = [item.value for item in frame.evaluate(given)] if given is not None else []
    named = [one.name for one in kinds if isinstance(one, v.ExternalObject | v.External)]
    named = named or sorted(set(frame.module.imports.values()))
    if fact.name.split(".")[0] in named:
        named = []  # the whole library is imported: any of its agents may be meant
    known = [find_actor(name, fact.actor_method or "") for name in named]
    rules = {one.false or one.rule for one in known if one is not None} - {"unresolved"}
    if fact.flag is not None and fact.true:
        false = fact.false if fact.false != "unresolved" else rules.pop() if len(rules) == 1 else None
        return flagged(replace(fact, false=false or "unresolved"), call, frame, mark)
    actors = [one for one in known if one is not None]
    if actors and len({(one.rule, one.flag, one.default) for one in actors}) == 1:
        value = next((one for one in kinds if isinstance(one, v.ExternalObject)), None)
        return by_fact(actors[0], value, call, frame)
    return (Alternative(v.Unknown(f"how {fact.name} acts"), marks=(mark,)),)


def _through_wrappers(play: Play) -> tuple[Alternative, ...]:
    """The actions as the environment's wrappers hand them on: a wrapper may replace them by random ones."""
    found = play.actions
    for environment in play.environments:
        value = environment.value
        for info in value.wrappers if isinstance(value, v.Environment) else ():
            method = info.methods.get("action") or info.methods.get("step")
            if method is None or not any(is_draw(node) for node in own_nodes(method.node)):
                continue
            frame = info.module.frame.enter(method, None, Alternative(v.Instance(info)))
            mark = Mark(info.module.path, method.node.lineno, f"{info.name} may replace the action")
            # What its `action` gives back, or its `step` hands to the inner environment.
            steps = [one for one in method.calls if last_name(one.func) == "step" and one.args]
            handed = [item for one in steps for item in frame.evaluate(one.args[0])]
            handed = [*frame.returns()] if method.name == "action" else handed
            found += tuple(one.noting(mark) for one in handed if isinstance(one.value, v.Action | v.Noise))
    return found


def find_paths(
    plays: Iterable[Play], updates: Updates
) -> tuple[list[EvaluationPath], list[Judged], list[Mark]]:
    """The evaluation paths of a repository, its training rollouts, and the steps that replay a recording.

    A replayed recording evaluates no policy, and shows nothing about the absence of an evaluation.
    """
    judged = [item for play in plays if (item := _judge(play, updates)) is not None]
    recorded = [step_mark(item.play) for item in judged if item.finding.rule == "recorded"]
    # A random or a fixed policy is not an evaluation; a training rollout that begins with one stays a rollout.
    judged = [
        item
        for item in judged
        if item.finding.rule not in ("random", "constant", "recorded") or item.role.kind == "rollout"
    ]
    everywhere = [item for item in judged if item.role.kind == "rollout"]
    elsewhere = [level for item in everywhere for level in split_tests([item])[0]]
    found: list[EvaluationPath] = []
    training: list[Judged] = []
    for script in dict.fromkeys(item.play.script for item in judged):
        here = [item for item in judged if item.play.script == script]
        rollouts = [item for item in here if item.role.kind == "rollout"]
        train_sets, tests = split_tests(rollouts)
        tested = [item for item, _ in tests]
        training += [item for item in rollouts if item not in tested]
        found += [_path(item, one, train_sets, rollouts, in_loop=True) for item, one in tests]
        for item in here:
            for one in item.sets or [NOT_MADE] if item.role.kind == "evaluation" else ():
                path = _path(item, one, train_sets or elsewhere, rollouts or everywhere, in_loop=False)
                found.append(replace(path, has_training=bool(rollouts)))
    return _merged(found), training, recorded


def _path(
    item: Judged,
    level: PlayedLevels,
    train_sets: list[PlayedLevels],
    rollouts: list[Judged],
    *,
    in_loop: bool,
) -> EvaluationPath:
    play, finding, role = item.play, item.finding, item.role
    provenance = finding.provenance if finding.is_answered else "unresolved"
    is_certain = True
    if in_loop and provenance in ("default-argument", "unresolved") and finding.is_answered:
        provenance = "unflagged"  # the rollout's own call: a default that training leaves alone too
    if provenance == "unflagged":
        provenance, is_certain = _unflagged(item, rollouts, in_loop=in_loop)
    heldout, is_heldout_proved, other = _heldout(item, level, train_sets, rollouts)
    base = set(play.doubts) | role.doubts | ({"no script reaches it"} if not play.is_reached else set())
    if not role.reports and not in_loop:
        base.add("nothing there sums or keeps what episodes return: it may only show the agent")
    doubts = base | finding.doubts
    if finding.candidates and role.doubts:
        # Two guesses at once, what is played for and how it acts, were often wrong.
        provenance = "unresolved"
    is_pooled = _is_pooled(play) or role.reloads
    called = [frame.function for frame in play.frame.chain() if frame.function is not None]
    answers: dict[str, object] = {
        "evaluates_heldout": heldout,
        "rule": None if not finding.is_answered else finding.rule,
        "provenance": None if provenance == "unresolved" else provenance,
        "in_loop": None if is_pooled else in_loop,
    }
    firm = {
        "evaluates_heldout": is_heldout_proved and not base and not level.doubts,
        "rule": not doubts,
        "provenance": not doubts and is_certain,
        "in_loop": not base and role.is_proved and (in_loop or role.is_fresh),
    }
    grades = {
        name: "open" if answer is None else "proved" if firm[name] else "likely"
        for name, answer in answers.items()
    }
    return EvaluationPath(
        script=play.script,
        rule=finding.rule,
        provenance=provenance,
        in_loop=None if is_pooled else in_loop,
        evaluates_heldout=heldout,
        step=step_mark(play),
        action=describe(play.site.action) if play.site.action is not None else "the library's own",
        levels=level.text,
        training_levels=other.text,
        constructor=level.constructor,
        training_constructor=other.constructor,
        agent=_agent(play, finding),
        candidates=finding.candidates,
        evidence=_evidence(item, level),
        doubts=tuple(sorted(doubts)),
        grades=grades,
        has_training=bool(rollouts),
        functions=tuple(one.name for one in called),
        inert_flags=tuple(dict.fromkeys(text for one in called for text in inert_parameters(one))),
        is_reached=play.is_reached,
        score=role.score,
        reports=role.reports,
        chooses_levels=item.chooses_unlike(rollouts) or play.site.is_text,
    )


def _heldout(
    item: Judged, level: PlayedLevels, train_sets: list[PlayedLevels], rollouts: list[Judged]
) -> tuple[bool | None, bool, PlayedLevels]:
    """Whether the levels differ from training's, whether that is proved, and the set it was compared with."""
    first = train_sets[0] if train_sets else NOT_MADE
    if item.chooses_unlike(rollouts):
        return None, False, first
    if train_sets:
        answers = [(*differ(level, other), other) for other in train_sets]
        known = [one for one in answers if one[0] is not None]
        said = {answer for answer, _, _ in known}
        is_own = any(other.play.script == item.play.script for other in rollouts)
        if said == {True} and level.kind == "none" and not is_own:
            # A script that trains on an environment of another name may have nothing to do with this one.
            return None, False, first
        if len(said) == 1:
            is_proved = len(known) == len(answers) and all(proved for _, proved, _ in answers)
            return known[0][0], is_proved, known[0][2]
        if known and item.role.home is None:
            return None, False, first
    for other in rollouts:
        if item.environments & other.environments:
            return False, True, other.sets[0] if other.sets else NOT_MADE
    receiver = item.play.site.receiver
    for other in rollouts:
        theirs = other.play.site.receiver
        is_near = other.play.frame is item.play.frame or isinstance(receiver, ast.Attribute)
        if receiver and theirs and is_near and ast.dump(receiver) == ast.dump(theirs):
            return False, False, NOT_MADE  # the same object, by its name
    return None, False, first


def _unflagged(item: Judged, rollouts: list[Judged], *, in_loop: bool) -> tuple[str, bool]:
    """The provenance where nothing at the call decides: the training rollout's own call, or the evaluation's."""
    if in_loop:
        return "training-rollout", True
    ours = item.finding.primitives
    nodes = {id(one.node) for one in ours}
    sharing = [other for other in rollouts if nodes & {id(one.node) for one in other.finding.primitives}]
    if sharing:
        # A flag that is given to the acting call says what was meant, also where both its values act alike.
        below = {frame for one in ours for frame in one.frame.chain()} - {*item.play.frame.chain()}
        if any(given_flags(frame) for frame in below):
            return "explicit-call-site", False
        return "training-rollout", len(sharing) == len(rollouts)
    if ours and all(one.frame.function is item.play.frame.function for one in ours):
        return "explicit-call-site", True
    known = [other.finding.rule for other in rollouts if other.finding.is_answered]
    if item.finding.rule not in known and (known or item.finding.rule == "argmax"):
        return (
            "explicit-call-site",
            False,
        )  # the evaluation acts otherwise than training does, or would do
    return "unresolved", False


def _evidence(item: Judged, level: PlayedLevels) -> tuple[Mark, ...]:
    play = item.play
    marks: list[Mark] = []
    for frame in play.frame.chain():
        marks += frame.found_by
        if frame.call is not None and frame.caller is not None:
            name = frame.function.name if frame.function else ""
            line = getattr(frame.call, "lineno", 0)
            marks.append(Mark(frame.caller.module.path, line, f"calls {name}"))
    marks += item.role.marks
    marks += (*level.marks, step_mark(play), *item.finding.marks)
    return tuple(dict.fromkeys(mark for mark in marks if mark.line > 0))


def describe_training(training: list[Judged]) -> list[TrainingRollout]:
    """The training rollouts, for the reader who wants to see what the tests were compared with."""
    found: dict[tuple[object, ...], TrainingRollout] = {}
    for item in training:
        for level in item.sets or [NOT_MADE]:
            key = (item.play.script, item.finding.rule, level.text, level.constructor)
            found.setdefault(key, TrainingRollout(*key, _evidence(item, level)))
    return list(found.values())


def _agent(play: Play, finding: RuleFinding) -> str | None:
    """Whether a value or a policy acts: by what is maximised, or by the names of the script and the acting class."""
    owners = [one.frame.function.owner for one in finding.primitives if one.frame.function is not None]
    names = [play.script.rsplit("/", 1)[-1], *(owner.name for owner in owners if owner is not None)]
    if any(map(VALUE_BASED.search, names)):
        return "value-based"
    if not finding.primitives:
        return None
    return "value-based" if finding.is_value_based else "policy-gradient"


def _is_pooled(play: Play) -> bool:
    """Whether the returns of several evaluations go into one list, and so of several versions of the weights."""
    for frame in play.frame.chain()[1:]:
        parent = parent_of(frame.call) if frame.caller and frame.call else None
        if isinstance(parent, ast.Call) and last_name(parent.func) == "extend":
            return True
    return False


def step_mark(play: Play) -> Mark:
    """The line that steps the environment."""
    words = "environment stepped" if play.site.fact is None else "environment handed over"
    return Mark(play.site.module.path, play.site.call.lineno, f"{words}: {describe(play.site.call.func)}")


def split_tests(rollouts: list[Judged]) -> tuple[list[PlayedLevels], list[tuple[Judged, PlayedLevels]]]:
    """Training sets, and the sets that are played during training but are held out from another one."""
    everything = [(item, level) for item in rollouts for level in item.sets]
    tests: list[tuple[Judged, PlayedLevels]] = []
    for item, level in everything:
        others = [other for _, other in everything if other.same != level.same]
        is_held = any(differ(level, other)[0] for other in others)
        is_mutual = level.kind != "full" and any(differ(other, level)[0] for other in others)
        if is_held and not is_mutual and level.kind in ("full", "finite", "option"):
            tests.append((item, level))
    chosen = {id(level) for _, level in tests}
    return [level for _, level in everything if id(level) not in chosen], tests


def inert_parameters(function: FunctionInfo) -> list[str]:
    """Parameters that by their name choose the rule, and that the function never reads."""
    if isinstance(function.node, ast.Lambda) or calls.is_stub(function):
        return []
    flags = [one for one in function.named if one.arg in words("rule_flags")]
    read = plain_names_in(function.node) if flags else frozenset()
    where = f"{function.name}({{}}) at {function.module.path}:{{}}"
    return [where.format(one.arg, one.lineno) for one in flags if one.arg not in read]


def _merged(paths: list[EvaluationPath]) -> list[EvaluationPath]:
    """One path where several chains of calls say the same; the best grade of each field counts."""
    found: dict[tuple[object, ...], EvaluationPath] = {}
    for path in paths:
        answers = (path.rule, path.provenance, path.in_loop, path.evaluates_heldout)
        key = (path.script, path.step, path.levels, answers)
        older = found.get(key)
        if older is None:
            found[key] = path
            continue
        grades = {name: max(older.grades[name], path.grades[name], key=LEVELS.index) for name in FIELDS}
        found[key] = replace(
            older,
            evidence=tuple(dict.fromkeys((*older.evidence, *path.evidence))),
            inert_flags=tuple(dict.fromkeys((*older.inert_flags, *path.inert_flags))),
            doubts=tuple(dict.fromkeys((*older.doubts, *path.doubts))),
            grades=grades,
            score=max(older.score, path.score),
        )
    return list(found.values())
