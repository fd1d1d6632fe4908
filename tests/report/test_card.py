"""The gap card, and what a reader would miss in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.report.printed_results import printed_results

from gapfloor.errors import UsageError
from gapfloor.report.card import build_card, card_to_json, card_to_markdown
from gapfloor.report.card_check import REASONS, check_card
from gapfloor.report.source import ReportSource, source_of_results
from gapfloor.report.write import WrittenReport


@pytest.fixture
def card(paper_source: ReportSource) -> dict[str, Any]:
    return build_card(paper_source)


def test_the_card_of_a_locked_study_is_complete(paper_report: WrittenReport) -> None:
    assert check_card(paper_report.folder / "card.json") == []
    assert check_card(paper_report.folder / "card.md") == []


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


@pytest.mark.parametrize(
    ("field", "remove"),
    [
        ("action rule", lambda card: card.pop("action_rule")),
        ("level sets", lambda card: card["level_sets"].pop("test")),
        ("draws", lambda card: card.update(draws=[])),
        ("seeds", lambda card: [game.update(seeds=[]) for game in card["games"]]),
        (
            "floor on training levels",
            lambda card: [game["floor"].update(train=None) for game in card["games"]],
        ),
        (
            "floor on held-out levels",
            lambda card: [game["floor"].update(test=None) for game in card["games"]],
        ),
        ("tests", lambda card: card.pop("tests")),
        ("plan", lambda card: card["plan"].pop("sha256")),
        ("engine", lambda card: card.update(engine=[])),
        ("versions", lambda card: card.pop("versions")),
    ],
)
def test_what_is_removed_is_named_alone(
    card: dict[str, Any], tmp_path: Path, field: str, remove: Any
) -> None:
    remove(card)
    path = tmp_path / "card.json"
    path.write_text(card_to_json(card), encoding="utf-8")
    assert [gap.field for gap in check_card(path)] == [field]


def test_a_game_without_a_gap_is_named(card: dict[str, Any], tmp_path: Path) -> None:
    for rule in card["games"][0]["rules"].values():
        rule["gap"] = None
    path = tmp_path / "card.json"
    path.write_text(card_to_json(card), encoding="utf-8")
    game = card["games"][0]
    assert [gap.field for gap in check_card(path)] == [f"gap (missing for {game['game']} {game['budget']})"]


@pytest.mark.fast
def test_hashes_that_are_unknown_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(card_to_json(build_card(source_of_results(printed_results()))), encoding="utf-8")
    fields = [gap.field for gap in check_card(path)]
    assert "checkpoints" in fields
    assert "engine" in fields
    assert "plan" not in fields


@pytest.mark.fast
def test_a_card_written_by_hand_is_checked_by_its_labels(tmp_path: Path) -> None:
    path = tmp_path / "card.md"
    path.write_text("# My gap\n\n- **Action rule:** greedy\n- Draws: 1, 2, 3\n", encoding="utf-8")
    missing = {gap.field for gap in check_card(path)}
    assert missing == set(REASONS) - {"action rule", "draws"}


@pytest.mark.fast
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", "[1]", "not a card"),
        ("a.json", json.dumps({"schema": "other/9"}), "schema"),
        ("a.md", "nothing here", "no labelled lines"),
    ],
)
def test_something_that_is_not_a_card_is_refused_in_a_sentence(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        check_card(path)
