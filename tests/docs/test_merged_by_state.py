"""tools/merged_by_state.py: argmax over the classes of one state, next to argmax and the classes of the game."""

import sys

import merged_by_state
from source_tree import ROOT


def test_three_rules_are_played_on_each_level(monkeypatch, capsys):
    agent = ROOT / "agents" / "coinrun-easy-impala-100k-s1"
    monkeypatch.setattr(sys, "argv", ["", "coinrun", str(agent), "--levels", "0:2"])
    merged_by_state.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[3].split(":")[0] for line in lines] == [
        "argmax", "merged, per game", "merged, per state",
    ]  # fmt: skip
    assert all(line.endswith("(2 levels)") for line in lines)
