"""Every free setting of a plan changes the result, stops the analysis or is refused."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.plan.lock import lock_plan
from gapfloor.plan.model import Plan, parse_plan
from known_truth import game_rows, table

pytestmark = pytest.mark.fast

LEVELS = 'train = "0:200"\ntest = "1000:1100"\n'
BASE = {
    "scope": 'rules = ["sampled", "greedy"]\n',
    "floor": 'method = "recommended"\n',
    "gaps": 'method = "recommended"\n',
    "intervals": "resamples = 200\n",
}


def study():
    parts = []
    for at, game in enumerate(("coinrun", "heist", "miner")):
        for rule in ("sampled", "greedy"):
            made = game_rows(
                game=game, rule=rule, agents=("a", "b"), n_runs=3, train=2.6, test=2.3, seed=at, repeats=1
            )
            parts.append(made if rule == "sampled" else [row for row in made if row["rule"] != "uniform"])
    blind = [
        {**row, "reference": "blind", "rule": "blind", "episode_return": row["episode_return"] + 0.1}
        for row in parts[0]
        if row["rule"] == "uniform"
    ]
    return table(*parts, blind)


@pytest.fixture(scope="module")
def episodes():
    return study()


def text(section="", lines=""):
    tables = dict(BASE)
    if section:
        tables[section] = tables.get(section, "") + lines + "\n"
        if lines.startswith(("rules", "method", "resamples")):
            tables[section] = lines + "\n"
    return 'name = "x"\n' + "".join(f"[{name}]\n{content}" for name, content in tables.items())


def locked(tmp_path, content):
    path = tmp_path / "plan.toml"
    path.write_text(content)
    lock_plan(path, cells_seen=0, seen_in="declared")
    return path


def document(episodes, plan):
    found = analyse(episodes, plan).to_dict()
    found["plan"].pop("hash")
    return _without(found, "plan_hash")


def _without(value, key):
    if isinstance(value, dict):
        return {k: _without(v, key) for k, v in value.items() if k != key}
    return [_without(item, key) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def base(episodes, tmp_path_factory):
    return document(episodes, locked(tmp_path_factory.mktemp("base"), text()))


CHANGES = {
    "agents.pooled": ("agents", "pooled = false"),
    "scope.primary_rule": ("scope", 'primary_rule = "greedy"'),
    "floor.reference": ("floor", 'reference = "blind"'),
    "floor.alpha": ("floor", "alpha = 0.01"),
    "floor.family": ("floor", 'family = ["rule"]'),
    "floor.margin_fraction": ("floor", "margin_fraction = 0.5"),
    "floor.margin_minimum": ("floor", "margin_minimum = 1.0"),
    "floor.least_runs": ("floor", "least_runs = 7"),
    "gaps.family": ("gaps", 'family = ["budget"]'),
    "pairs.differences": ("pairs", 'differences = ["greedy - sampled"]'),
    "pairs.quantities": ("pairs", 'quantities = ["test"]'),
    "agents.order": ("agents", 'order = ["b", "a"]'),
    "agents.one_draw_at_a_time": ("agents", "one_draw_at_a_time = false"),
    "normalised.upper": ("normalised", "upper = {coinrun = 10.0}"),
    "intervals.confidence": ("intervals", "confidence = 0.9"),
    "intervals.resamples": ("intervals", "resamples = 300"),
    "intervals.seed": ("intervals", "seed = 1"),
}
STOPS = {
    "scope.rules": ("scope", 'rules = ["sampled", "greedy", "merged"]'),
    "scope.train": ("scope", 'train = "0:30"'),
    "scope.test": ("scope", 'test = "1000:1010"'),
    "scope.games": ("scope.games", '8M = ["coinrun", "heist", "miner", "bigfish"]'),
    "scope.draws": ("scope", "draws = 3"),
    "scope.episodes": ("scope", "episodes = 128"),
    "scope.agents": ("scope", 'agents = ["a", "b", "c"]'),
    "scope.runs": ("scope", "runs = 5"),
    "scope.seeds": ("scope", 'seeds = ["0", "1", "9"]'),
}
REFUSED = {
    "floor.method": ("floor", 'method = "paper"'),
    "gaps.method": ("gaps", 'method = "paper"'),
    "stop.value_not_finite": ("stop", "value_not_finite = false"),
    "floor.reference": ("floor", 'reference = "nonsense"'),
    "agents.order": ("agents", 'order = ["nosuch"]'),
    "pairs.differences": ("pairs", 'differences = ["sampled - nosuchrule"]'),
}
#: Settings that need other data than these: see test_plan_status, test_store and test_paper_study.
ELSEWHERE = {
    "name", "screen.rule", "screen.actions", "screen.cuts", "screen.sweep", "stop.cell_missing",
    "stop.replay_check_fails",
}  # fmt: skip


def test_no_free_setting_is_left_out_here():
    """A setting with a single possible value cannot be changed."""
    free = set()
    for name, hint in typing.get_type_hints(Plan).items():
        if not dataclasses.is_dataclass(hint):
            free.add(name)
            continue
        for field, kind in typing.get_type_hints(hint).items():
            if typing.get_origin(kind) is typing.Literal and len(typing.get_args(kind)) == 1:
                continue
            free.add(f"{name}.{field}")
    assert free == {*CHANGES, *STOPS, *REFUSED, *ELSEWHERE}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_setting_changes_the_result(name, base, episodes, tmp_path):
    if name == "floor.reference":  # only one game has it, so a locked plan would stop
        changed = document(episodes, parse_plan(text(*CHANGES[name]), source="x"))
        assert {row["reference"] for row in changed["floor_comparisons"]} == {"blind"}
        return
    assert document(episodes, locked(tmp_path, text(*CHANGES[name]))) != base


@pytest.mark.parametrize("name", STOPS)
def test_data_that_are_not_what_a_locked_plan_says_stop_it(name, episodes, tmp_path):
    with pytest.raises(CheckFailedError, match="The plan stops the analysis"):
        analyse(episodes, locked(tmp_path, text(*STOPS[name])))


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_nothing_has_is_refused(name, episodes):
    with pytest.raises(UsageError, match=name.replace(".", r"\.")):
        analyse(episodes, parse_plan(text(*REFUSED[name]), source="x"))


def test_a_missing_floor_stops_a_locked_plan(episodes, tmp_path):
    rows = [row for row in episodes.to_pylist() if row["rule"] != "uniform" or row["level_set"] == "train"]
    with pytest.raises(CheckFailedError, match="a floor is missing"):
        analyse(table(rows), locked(tmp_path, text()))


def test_held_out_rows_on_training_levels_stop_a_locked_plan_and_are_told_without_one(tmp_path):
    shared = {"train": range(0, 60), "test": range(30, 90)}
    rows = table(game_rows(levels=shared))
    assert "levels" in {problem.kind for problem in analyse(rows).problems}
    content = text("scope", 'rules = ["sampled"]\ntest = "0:200"').replace(
        'rules = ["sampled", "greedy"]\n', ""
    )
    with pytest.raises(CheckFailedError, match="30 levels were played both"):
        analyse(rows, locked(tmp_path, content))


def test_only_what_the_plan_names_is_pre_registered(episodes, tmp_path):
    merged = [{**row, "rule": "merged"} for row in episodes.to_pylist() if row["rule"] == "greedy"]
    content = text("scope", 'rules = ["sampled", "greedy", "merged"]')
    results = analyse(table(episodes.to_pylist(), merged), locked(tmp_path, content))
    assert {row.status for row in results.floor_comparisons} == {"pre-registered"}
    for rows in (results.agent_floor_comparisons, results.reference_comparisons):
        assert rows
        assert {row.status for row in rows} == {"exploratory"}
    pairs = {(row.rule, row.rule_b): row.status for row in results.pairs}
    assert pairs == {("sampled", "greedy"): "pre-registered", ("merged", "greedy"): "exploratory"}
    named = [row.exploratory_reason for row in results.pairs if row.rule == "merged"]
    assert set(named) == {"the plan does not name the difference merged - greedy"}
