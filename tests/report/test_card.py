"""The gap card."""

from __future__ import annotations

from typing import Any

import pytest

from gapfloor.report.card import build_card, card_to_markdown
from gapfloor.report.source import ReportSource


@pytest.fixture
def card(paper_source: ReportSource) -> dict[str, Any]:
    return build_card(paper_source)


def test_the_card_says_rule_sets_draws_floor_gap_plan_and_versions(card: dict[str, Any]) -> None:
    assert card["action_rule"]["primary"] == "sampled"
    assert card["level_sets"] == {"train": "0:200", "test": "1000:1100"}
    assert card["draws"] == ["0", "1", "2"]
    heist = next(game for game in card["games"] if (game["game"], game["budget"]) == ("heist", "8M"))
    assert heist["floor"]["test"]["mean"] == pytest.approx(3.15, abs=0.005)
    assert heist["floor"]["train"]["episodes"] == 384
    assert heist["rules"]["sampled"]["test"]["call"] == "not distinguishable"
    assert heist["rules"]["sampled"]["gap"]["mean"] == pytest.approx(1.54, abs=0.006)
    assert card["plan"]["status"] == "pre-specified"
    assert len(card["plan"]["sha256"]) == 64
    assert card["engine"] == ["procgen 0.10.7"]


def test_markdown_shows_the_same_numbers(card: dict[str, Any]) -> None:
    text = card_to_markdown(card)
    assert "- **Action rule:** sampled (primary); also greedy, merged" in text
    row = next(line for line in text.splitlines() if line.startswith("| heist | 8M") and "greedy" in line)
    assert "below the floor" in row
