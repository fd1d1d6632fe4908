"""A gap card as a model card, read back by the Hub's own library."""

import pytest

from gapfloor.report.card import model_card

huggingface_hub = pytest.importorskip("huggingface_hub")


@pytest.fixture
def card():
    def returns(mean):
        return {"mean": mean, "sem": 0.2, "call": "above", "call_label": "above", "p_holm": 0.01}

    return {
        "schema": "gapfloor-card/3",
        "action_rule": {"primary": "sampled", "all": ["sampled"]},
        "level_sets": {"train": "0:200", "test": "1000:1100"},
        "level_sets_observed": False,
        "draws": ["0"],
        "episodes_per_draw": [128],
        "floor_on_same_draws": True,
        "checkpoints": {"fixed": True, "runs": []},
        "games": [
            {
                "game": "coinrun", "mode": "easy", "budget": "8M", "agents": ["impala"], "seeds": ["1"],
                "floor": {"train": {"mean": 2.5, "sem": 0.1, "episodes": 384}, "test": None},
                "rules": {"sampled": {"n": 3, "status": "exploratory", "train": returns(8.0), "test": returns(7.0),
                                      "gap": {"mean": 1.0, "sem": None, "tested": 1.0, "low": 0.5, "high": 1.5,
                                              "p_holm": 0.02, "call": "train higher"}}},
                "reading": {"sentence": "One.", "supports": "Two.", "does_not_support": "Three."},
            }
        ],
        "tests": {
            "floor": "Welch", "gap": "Fisher", "method": "paper", "alpha": 0.05,
            "resamples": 10,
        },
        "plan": {"name": "paper", "sha256": "0", "status": "exploratory", "locked_at": None},
        "engine": ["procgen 0.10.7"],
        "versions": {"gapfloor": "0.2.0"},
    }  # fmt: skip


def test_the_hub_reads_every_result_with_its_rule_and_levels(card):
    read = huggingface_hub.ModelCard(model_card(card, name="someone/coinrun"))
    results = {result.metric_name: result.metric_value for result in read.data.eval_results}
    assert results == {
        "mean return, sampled, training levels 0:200": "8.00 +/- 0.20",
        "mean return of uniform play, training levels 0:200": "2.50 +/- 0.10",
        "mean return, sampled, held-out levels 1000:1100": "7.00 +/- 0.20",
        "generalization gap, sampled": "1.00",
    }
    assert read.data.model_name == "someone/coinrun"
    assert "# Gap card" in read.text
