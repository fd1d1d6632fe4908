"""The part of a Hugging Face model card that states a gap: the model-index block and a section in Markdown.

Both are made of a gap card (card.json), so they say what the card says and nothing else. Values carry their rule in
their name, because a sampled and a greedy return belong to two policies.
"""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]

from gapfloor.escape import clean_text
from gapfloor.report.card import card_to_markdown

#: The name in a report's model-card.md, to be replaced by that of the model.
MODEL_NAME = "OWNER/MODEL"

#: Level set of the card -> its name for the reader of a model page.
_WORDS = {"train": "training levels", "test": "held-out levels"}


def model_card(card: dict[str, Any], *, name: str) -> str:
    """A README.md with the model-index of the results as its header and the gap card as its section."""
    header = {"tags": ["reinforcement-learning", "gapfloor"], "model-index": [model_index(card, name=name)]}
    block = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=110)
    return f"---\n{block}---\n\n{card_to_markdown(card)}"


def model_index(card: dict[str, Any], *, name: str) -> dict[str, Any]:
    """One entry of a model index: a result per game and budget, a metric per rule and level set."""
    return {"name": name, "results": [_result(game, card) for game in card["games"]]}


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
