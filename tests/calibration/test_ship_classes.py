"""The shipped classes are what the engine gives when they are measured again."""

from __future__ import annotations

import json
from importlib import resources

import pytest

import ship_classes


def test_a_shipped_game_is_measured_again_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ship_classes, "GAMES", ("fruitbot",))
    monkeypatch.setattr(ship_classes, "SHIPPED_MODES", ("easy",))
    (measured,) = json.loads(ship_classes.measure_shipped())["games"]
    shipped = json.loads((resources.files("gapfloor") / "data" / "classes.json").read_text(encoding="utf-8"))
    (kept,) = [game for game in shipped["games"] if (game["game"], game["mode"]) == ("fruitbot", "easy")]
    assert measured == kept
