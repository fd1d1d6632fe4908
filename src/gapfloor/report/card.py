"""The gap card: a short statement that lets a reader judge a reported gap, as Markdown, JSON and part of a model card.

It says the action rule, the level sets and draws, the seeds, the floor on both sets, the gap, the tests, the plan and
the versions. What is unknown is absent. The part of a Hugging Face model card (a model-index block and the card) says
what the card says and nothing else.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import yaml  # type: ignore[import-untyped]

from gapfloor.analysis.rows import Row
from gapfloor.escape import clean_text
from gapfloor.json_values import jsonable, to_exact
from gapfloor.report.findings import TEST, TRAIN, GameFindings
from gapfloor.report.provenance import Provenance
from gapfloor.report.source import ReportSource
from gapfloor.report.text_templates import said, template
from gapfloor.report.verdict import Verdict, build_verdicts
from gapfloor.settings import shipped

SCHEMA = "gapfloor-card/3"


def build_card(source: ReportSource) -> dict[str, Any]:
    """The card as a JSON document; values unrounded, what is unknown null."""
    findings, provenance = source.findings, source.provenance
    plan, words, checked = (
        findings.plan,
        shipped("report/templates/method_words.toml"),
        provenance.verification,
    )
    games = sorted(
        (_game(verdict, provenance) for verdict in build_verdicts(findings)),
        key=lambda game: findings.budgets.index(game["budget"]),
    )
    card = {
        "schema": SCHEMA,
        "action_rule": {"primary": findings.primary, "all": list(findings.rules)},
        "level_sets": dict(provenance.levels),
        "level_sets_observed": provenance.levels_are_observed,
        "draws": list(provenance.draws),
        "episodes_per_draw": list(provenance.episodes_per_draw),
        "floor_on_same_draws": findings.same_draws,
        "checkpoints": {
            "fixed": True,
            "runs": [
                {name: getattr(run, name) for name in ("game", "budget", "agent", "seed")}
                | {"sha256": run.policy or None}
                for run in provenance.runs
            ],
        },
        "games": games,
        "tests": {
            "floor": words[plan.method]["floor_test"],
            "gap": words[plan.method]["gap_test"],
            "method": plan.method,
            "alpha": plan.alpha,
            "confidence": plan.confidence,
            "resamples": plan.resamples,
            "families": sorted({row.decision.family for row in findings.results.floor_comparisons}),
        },
        "plan": {
            "name": plan.name,
            "sha256": plan.hash,
            "status": plan.status,
            "locked_at": plan.locked_at or None,
            "commit": plan.commit or None,
            "cells_seen": plan.cells_seen,
            "addenda": [
                {"name": addendum.name, "sha256": addendum.hash, "status": addendum.status}
                for addendum in plan.addenda
            ],
        },
        "engine": list(provenance.engines),
        "verification": checked
        and {**to_exact(checked), "is_sound": checked.is_sound, "sentence": checked.sentence},
        "versions": dict(provenance.versions),
    }
    return jsonable(card)  # type: ignore[no-any-return]


def card_facts(card: dict[str, Any]) -> dict[str, str]:
    """What a card says about the whole study, by label; empty where it is not known."""
    return {label: text for (label,), text in said("card_facts.j2", card=card)}


def card_to_markdown(card: dict[str, Any]) -> str:
    """The card for people: labelled lines, then one table of games."""
    return template("card.md.j2").render(card=card, facts=card_facts(card))


def _game(verdict: Verdict, provenance: Provenance) -> dict[str, Any]:
    place = verdict.place
    floors = {level_set: place.floor(level_set) for level_set in (TRAIN, TEST)}
    rules = {rule: _rule(place, rule) for rule in place.findings.rules}
    seeds = (
        run.seed
        for run in provenance.runs
        if (run.game, run.budget) == (place.game, place.budget) and place.env.agent in ("", run.agent)
    )
    return {
        "game": place.game,
        "mode": place.env.mode,
        "budget": place.budget,
        "agents": list(place.agents),
        "seeds": list(dict.fromkeys(filter(None, seeds))),
        "floor": {level_set: row and _fields(row, "floor") for level_set, row in floors.items()},
        "rules": {rule: entry for rule, entry in rules.items() if entry is not None},
        "reading": {
            "sentence": verdict.sentence,
            "supports": verdict.supports,
            "does_not_support": verdict.does_not,
        },
    }


def _rule(place: GameFindings, rule: str) -> dict[str, Any] | None:
    rows = {level_set: place.comparison(rule, level_set) for level_set in (TRAIN, TEST)}
    gap = place.gap(rule)
    first = rows[TEST] or rows[TRAIN] or gap
    if first is None:
        return None
    returns = {level_set: row and _fields(row, "comparison") for level_set, row in rows.items()}
    return {"n": first.n, "status": first.status, **returns, "gap": gap and _fields(gap, "gap")}


def _fields(row: Row, kind: str) -> dict[str, Any]:
    return {name: attrgetter(path)(row) for name, path in shipped("report/templates/card.toml")[kind].items()}


#: The name in a report's model-card.md, to be replaced by that of the model.
MODEL_NAME = "OWNER/MODEL"

#: Level set of the card -> its name for the reader of a model page.
_WORDS = {"train": "training levels", "test": "held-out levels"}


def model_card(card: dict[str, Any], *, name: str) -> str:
    """A README.md with the model-index of the results as its header and the gap card as its section."""
    # One entry with a result per game and budget, and a metric per rule and level set.
    index = {"name": name, "results": [_result(game, card) for game in card["games"]]}
    header = {"tags": ["reinforcement-learning", "gapfloor"], "model-index": [index]}
    block = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=110)
    return f"---\n{block}---\n\n{card_to_markdown(card)}"


def _result(game: dict[str, Any], card: dict[str, Any]) -> dict[str, Any]:
    where = clean_text(" ".join(str(game[part]) for part in ("game", "mode", "budget") if game[part]))
    metrics = []
    for level_set, words in _WORDS.items():
        levels = card["level_sets"].get(level_set)
        named = f"{words} {levels}" if levels else words
        for rule, entry in game["rules"].items():
            if entry[level_set]:
                metrics.append(_metric(entry[level_set], f"mean return, {rule}, {named}"))
        if game["floor"][level_set]:
            metrics.append(_metric(game["floor"][level_set], f"mean return of uniform play, {named}"))
    for rule, entry in game["rules"].items():
        if entry["gap"]:
            metrics.append(_metric(entry["gap"], f"generalization gap, {rule}"))
    return {
        "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
        "dataset": {"type": clean_text(game["game"]), "name": where},
        "metrics": metrics,
    }


def _metric(entry: dict[str, Any], name: str) -> dict[str, Any]:
    error = "" if entry["sem"] is None else f" +/- {entry['sem']:.2f}"
    return {"type": "mean_reward", "value": f"{entry['mean']:.2f}{error}", "name": name, "verified": False}
