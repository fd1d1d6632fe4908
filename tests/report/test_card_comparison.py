"""Two gap cards side by side."""

import copy

from gapfloor.report.card_comparison import compare_cards


def card_with(call: str, mean: float) -> dict:
    entry = {"test": {"mean": mean, "sem": 0.5, "call": call, "call_label": call}, "gap": None}
    return {"games": [{"game": "coin|run", "budget": "8M", "rules": {"sampled": entry}}]}


def test_what_changed_has_an_arrow_and_what_did_not_has_none() -> None:
    table = compare_cards(card_with("above", 7.0), card_with("above", 8.0))
    assert "7.00 ± 0.50 → 8.00 ± 0.50" in table
    assert "| above |" in table


def test_a_rule_that_one_card_lacks_is_a_dash() -> None:
    after = card_with("above", 7.0)
    after["games"][0]["rules"]["greedy"] = copy.deepcopy(after["games"][0]["rules"]["sampled"])
    assert "– → above" in compare_cards(card_with("above", 7.0), after)


def test_a_name_cannot_break_the_table() -> None:
    assert "coin\\|run" in compare_cards(card_with("above", 7.0), card_with("above", 7.0))


def test_a_card_of_version_0_1_states_its_call_without_a_label() -> None:
    old = card_with("above", 7.0)
    del old["games"][0]["rules"]["sampled"]["test"]["call_label"]
    assert "| above |" in compare_cards(old, card_with("above", 7.0))
