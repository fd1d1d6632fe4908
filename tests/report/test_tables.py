"""Tables: the paper's layout to the letter from its own numbers, and the same tables for other data."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import pytest
from tests.report.printed_cka import HYPERPARAMETERS, PRINTED, write_cka
from tests.report.printed_results import PAPER, printed_results, without

from gapfloor.report.cka import read_cka
from gapfloor.report.source import source_of_results
from gapfloor.report.tables.build import EXTRA_TABLES, Tables, build_tables
from gapfloor.tables.formats import to_csv, to_float, to_markdown, to_tabular

pytestmark = pytest.mark.fast

GOLDEN = Path(__file__).parent / "data" / "golden"
#: The paper's sixteen tables.
SIXTEEN = (
    "audit", "unmask", "tiers", "res25m", "pooled", "gap8m", "floor", "sweep", "merged", "merged_argmax",
    "cobbe", "commits", "hyper", "full8m", "gap2x2", "ckacontrol",
)  # fmt: skip


def hyperparameters() -> dict[str, dict[str, object]]:
    """The printed hyperparameters as two checkpoints' headers would hold them."""
    shared = {
        "rollout_length": 256, "learning_rate": 5e-4, "discount": 0.999, "gae_lambda": 0.95, "minibatches": 8,
        "epochs": 3, "clip": 0.2, "entropy_coefficient": 0.01, "value_coefficient": 0.5,
        "max_gradient_norm": 0.5, "rewards": "raw",
    }  # fmt: skip
    return {
        budget: {"environments": HYPERPARAMETERS["parallel_envs"][budget],
                 "budget_steps": HYPERPARAMETERS["total_timesteps"][budget], **shared}
        for budget in ("8M", "25M")
    }  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("cka")
    write_cka(folder)
    around = {"cka": read_cka(folder), "hyperparameters": hyperparameters()}
    source = dataclasses.replace(source_of_results(printed_results()), **around)
    return build_tables(source, extra=EXTRA_TABLES)


def test_all_sixteen_tables_of_the_paper_are_made(tables: Tables) -> None:
    assert not set(SIXTEEN) - {table.name for table in tables.tables}


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.tex")))
def test_a_table_of_the_papers_numbers_is_the_papers_table(tables: Tables, name: str) -> None:
    table = tables.get(name)
    assert table is not None
    assert to_tabular(table) == (GOLDEN / f"{name}.tex").read_text(encoding="utf-8")


def test_cka_table_prints_the_means_over_seeds(tables: Tables) -> None:
    table = tables.get("ckacontrol")
    assert table is not None
    for row, printed in zip(table.body, PRINTED, strict=True):
        shown = [cell.plain for cell in row]
        expected = [
            f"{printed[name]:.3f}" for name in ("as_computed", "perm", "analytic", "A", "C", "B", "D")
        ]
        assert shown == [printed["game"], printed["agent"], *expected, f"{printed['pr']:.1f}"]


def test_hyperparameters_that_differ_between_budgets_name_them(tables: Tables) -> None:
    table = tables.get("hyper")
    assert table is not None
    shown = {row[0].plain: row[1].plain for row in table.body}
    assert shown["Parallel environments"] == "16 (8M); 256 (25M)"
    assert shown["Total timesteps"] == "8M; 25M"
    assert shown["Discount factor γ"] == "0.999"
    assert shown["Reward normalization / clipping"] == "none"
    assert r"$5\times10^{-4}$ (no annealing)" in to_tabular(table)


def test_powers_of_ten_that_differ_between_budgets_are_all_printed() -> None:
    rates = {"8M": {"learning_rate": 5e-4}, "25M": {"learning_rate": 2.5e-4}}
    source = dataclasses.replace(source_of_results(printed_results()), hyperparameters=rates)
    table = build_tables(source, extra=("hyper",)).get("hyper")
    assert table is not None
    both = r"$5\times10^{-4}$ (no annealing) (8M); $2.5\times10^{-4}$ (no annealing) (25M)"
    assert both in to_tabular(table)


def test_audit_tables_come_from_the_ledger(tables: Tables) -> None:
    table = tables.get("audit")
    assert table is not None
    assert [cell.plain for cell in table.body[0]] == ["VSOP-3D", "arXiv'24", "✓", "✓"]
    assert [row[2].plain for row in table.body].count("✓") == 8
    commits = tables.get("commits")
    assert commits is not None
    assert "1fbf2567cca1" in to_tabular(commits)


def test_csv_holds_unrounded_values_one_per_column(tables: Tables) -> None:
    table = tables.get("unmask")
    assert table is not None
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [row["env"] for row in rows] == [row["env"] for row in PAPER["unmask"]]
    assert float(rows[7]["greedy"]) == 10 * 104 / 2304
    assert rows[7]["sampled_call"] == "not distinguishable"


def test_floor_csv_repeats_the_name_that_the_layout_leaves_out(tables: Tables) -> None:
    table = tables.get("floor")
    assert table is not None
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [row["env"] for row in rows[:2]] == ["starpilot (8M)"] * 2


def test_markdown_has_as_many_cells_a_row_as_columns(tables: Tables) -> None:
    for table in tables.tables:
        lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
        assert {line.replace(r"\|", "").count("|") for line in lines} == {len(table.columns) + 1}, table.name


def test_what_the_data_lack_is_left_out_with_its_reason() -> None:
    results = without(printed_results(), screen=(), screen_summaries=(), normalised=(), disagreements=())
    made = build_tables(source_of_results(results))
    missing = {entry.name: entry.why for entry in made.missing}
    assert "no entropies" in missing["tiers"]
    assert "constants" in missing["cobbe"]
    assert "results/cka" in missing["ckacontrol"]
    assert made.get("unmask") is not None


def test_without_a_second_rule_its_columns_are_left_out() -> None:
    full = printed_results()
    results = without(
        full,
        source=dataclasses.replace(full.source, rules=("sampled",)),
        floor_comparisons=tuple(row for row in full.floor_comparisons if row.rule == "sampled"),
        gaps=tuple(row for row in full.gaps if row.rule == "sampled"),
    )
    table = build_tables(source_of_results(results)).get("unmask")
    assert table is not None
    assert [column.header.plain for column in table.columns][-1] == "k/6"
    assert len(table.columns) == 7


def test_other_budgets_and_games_give_the_same_tables_under_their_names() -> None:
    full = printed_results()
    rename = {"8M": "500k", "25M": "2M"}

    def renamed(rows: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(
            dataclasses.replace(row, budget=rename.get(row.budget, row.budget), game=f"my_{row.game}")  # type: ignore[attr-defined,type-var]
            for row in rows
        )

    results = without(
        full,
        source=dataclasses.replace(
            full.source, budgets=("500k", "2M"), games=tuple(f"my_{game}" for game in full.source.games)
        ),
        **{
            name: renamed(getattr(full, name))
            for name in ("floors", "floor_comparisons", "gaps", "agents", "screen")
        },
    )
    made = build_tables(source_of_results(results))
    names = {table.name for table in made.tables}
    assert {"unmask", "unmask_2m", "gap500k", "full500k", "res2m", "gap2x2"} <= names
    unmask = made.get("unmask")
    assert unmask is not None
    assert r"my\_heist" in to_tabular(unmask)


def test_runs_that_differ_in_number_are_counted_in_every_row(tables: Tables) -> None:
    table = tables.get("unmask_25m")
    assert table is not None
    assert "k/n" in [column.header.plain for column in table.columns]


def test_exploratory_rows_make_the_caption_say_so() -> None:
    full = printed_results()
    gaps = tuple(dataclasses.replace(row, status="exploratory") for row in full.gaps)
    table = build_tables(source_of_results(without(full, gaps=gaps))).get("gap8m")
    assert table is not None
    assert r"\caption{Exploratory: " in to_float(table)
    assert "(exploratory)" in to_markdown(table)


def test_a_game_named_like_markup_prints_as_text() -> None:
    full = printed_results()
    evil = r"<script>|$\input{x}_#%"
    rows = tuple(dataclasses.replace(row, game=evil) for row in full.floor_comparisons if row.game == "heist")
    table = build_tables(source_of_results(without(full, floor_comparisons=rows, gaps=()))).get("unmask")
    assert table is not None
    assert r"\input{" not in to_tabular(table)
    assert r"\textless{}script\textgreater{}\textbar{}\$\textbackslash{}input\{x\}\_\#\%" in to_tabular(table)
    assert r"\<script\>\|" in to_markdown(table)


def test_cka_files_that_are_wrong_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"game": "heist", "agent": "fpn"}))
    with pytest.raises(Exception, match="without `as_computed`"):
        read_cka(tmp_path)


def test_stricter_references_get_a_table_of_their_own() -> None:
    full = printed_results()
    assert build_tables(source_of_results(full)).get("references") is None
    strict = tuple(
        dataclasses.replace(
            row,
            reference="constant:7",
            floor=4.0,
            decision=dataclasses.replace(row.decision, call="not distinguishable"),
        )
        for row in full.floor_comparisons
        if (row.game, row.budget) == ("heist", "8M")
    )
    table = build_tables(source_of_results(without(full, reference_comparisons=strict))).get("references")
    assert table is not None
    assert {row[3].plain for row in table.body} == {"constant:7", "R_max"}
    assert {row[0].plain for row in table.body} == {"heist"}


def test_a_game_in_two_modes_is_named_with_its_mode() -> None:
    full = printed_results()
    hard = tuple(
        dataclasses.replace(row, mode="hard") for row in full.floor_comparisons if row.game == "heist"
    )
    table = build_tables(
        source_of_results(without(full, floor_comparisons=full.floor_comparisons + hard))
    ).get("unmask")
    assert table is not None
    names = [row[0].plain for row in table.body]
    assert {"heist easy", "heist hard", "miner"} <= set(names)
