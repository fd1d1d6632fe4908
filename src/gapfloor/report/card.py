"""The gap card: a short statement that lets a reader judge a reported gap, as Markdown and JSON.

For a paper's appendix or a model card. It says the action rule, the level sets and draws, the seeds, the floor on
both sets, the gap, the tests, the plan and the versions. What is unknown is absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from gapfloor.analysis.rows import Row
from gapfloor.json_values import jsonable, to_exact
from gapfloor.report.findings import TEST, TRAIN, Env, GameFindings
from gapfloor.report.provenance import Provenance
from gapfloor.report.source import ReportSource
from gapfloor.report.text_templates import read_tables, render_text, said
from gapfloor.report.verdict import Verdict, build_verdicts
from gapfloor.tables.cells import formatted

SCHEMA = "gapfloor-card/3"


def build_card(source: ReportSource) -> dict[str, Any]:
    """The card as a JSON document; values unrounded, what is unknown null."""
    findings, provenance = source.findings, source.provenance
    plan, words = findings.plan, read_tables("method_words.toml")
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
        "verification": _verification(provenance),
        "versions": dict(provenance.versions),
    }
    return jsonable(card)  # type: ignore[no-any-return]


def card_to_json(card: dict[str, Any]) -> str:
    """The card's JSON file."""
    return json.dumps(card, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def card_facts(card: dict[str, Any]) -> dict[str, str]:
    """What a card says about the whole study, by label; empty where it is not known."""
    return {label: text for (label,), text in said("card_facts.j2", card=card)}


def card_to_markdown(card: dict[str, Any]) -> str:
    """The card for people: labelled lines, then one table of games."""
    return render_text("card.md.j2", card=card, facts=card_facts(card), call_text=_call_text)


def _call_text(entry: dict[str, Any]) -> str:
    return (
        entry["call_label"] if entry["call"] == "not tested" else formatted("call_words", entry["call"]).plain
    )


def _game(verdict: Verdict, provenance: Provenance) -> dict[str, Any]:
    place = verdict.place
    floors = {level_set: place.floor(level_set) for level_set in (TRAIN, TEST)}
    rules = {rule: _rule(place, rule) for rule in place.findings.rules}
    return {
        "game": place.game,
        "mode": place.env.mode,
        "budget": place.budget,
        "agents": list(place.agents),
        "seeds": _seeds(provenance, place.env, place.budget),
        "floor": {
            level_set: {"mean": row.mean, "sem": row.sem, "episodes": row.n, "draws": row.n_draws}
            if row
            else None
            for level_set, row in floors.items()
        },
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
    returns = {level_set: row and _fields(row, _COMPARED) for level_set, row in rows.items()}
    return {"n": first.n, "status": first.status, **returns, "gap": gap and _fields(gap, _GAP)}


#: Field of the card -> field of the row.
_COMPARED = {
    "mean": "mean", "sem": "sem", "delta": "delta.value", "low": "delta.low", "high": "delta.high",
    "p_holm": "decision.p_adjusted", "p_tost": "equivalence.p", "call": "call", "call_label": "decision.label",
}  # fmt: skip
_GAP = {
    "mean": "gap", "sem": "gap_sem", "tested": "estimate.value", "low": "estimate.low", "high": "estimate.high",
    "p_holm": "decision.p_adjusted", "floor_gap": "floor_gap", "call": "decision.label",
}  # fmt: skip


def _fields(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: attrgetter(path)(row) for name, path in names.items()}


def _verification(provenance: Provenance) -> dict[str, Any] | None:
    found = provenance.verification
    return (
        None if found is None else {**to_exact(found), "is_sound": found.is_sound, "sentence": found.sentence}
    )


def _seeds(provenance: Provenance, env: Env, budget: str) -> list[str]:
    return list(
        dict.fromkeys(
            run.seed
            for run in provenance.runs
            if (run.game, run.budget) == (env.game, budget) and env.agent in ("", run.agent) and run.seed
        )
    )
