"""`gapfloor analyse`: apply a plan's tests to a store or to anyone's episode file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json
from gapfloor.cli.table_options import table_options
from gapfloor.cli.tables import print_table
from gapfloor.errors import UsageError

if TYPE_CHECKING:
    from gapfloor.analysis.floor_results import FloorComparisonResult
    from gapfloor.analysis.gap_results import GapResult
    from gapfloor.analysis.results import AnalysisResults
    from gapfloor.analysis.table_options import TableOptions

#: Problems printed before the rest is counted.
_SHOWN = 20
_COMPARISON_HEADINGS = (
    "game", "budget", "rule", "levels", "n", "return", "floor", "delta [interval]", "Holm p", "k/n", "call",
)  # fmt: skip
_GAP_HEADINGS = (
    "game", "budget", "rule", "n", "gap [95% CI]", "t interval", "Fisher p", "Holm p", "Stouffer Z",
    "excess [interval]", "its Holm p", "levels", "call",
)  # fmt: skip


@click.command(name="analyse")
@click.argument("source", type=click.Path(path_type=Path), required=False)
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    help="The plan to follow; its lock is read from the same folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write results.json and one CSV file per table to this folder.",
)
@click.option(
    "--sb3",
    multiple=True,
    metavar="LABELS:FILE",
    help="Add a Stable-Baselines3 evaluations.npz or monitor.csv, with its labels: "
    "game=heist,budget=8M,agent=ppo,seed=1,rule=greedy,level_set=test:logs/evaluations.npz",
)
@click.option(
    "--rliable", type=click.Path(path_type=Path), help="Write rliable's score matrices to this .npz file."
)
@table_options()
def command(
    source: Path | None,
    plan: Path | None,
    as_json: bool,
    out: Path | None,
    sb3: tuple[str, ...],
    rliable: Path | None,
    table: TableOptions,
) -> None:
    """Apply the plan's tests to SOURCE: a store, or a .csv, .tsv, .parquet, .jsonl or .npz file of episodes.

    A file needs columns for game, agent, seed, rule, level_set and episode_return, under these or common other names
    (env, algo, split, score ...); --columns, --label, --rule and --floor supply what it does not say. level_seed makes
    claims about the generator of levels possible. Rows with the rule "uniform" are the floor. Without --plan the
    paper's plan is used with the recommended calls, and every result is exploratory. Calls are shown by both methods.
    """
    from gapfloor.analysis.apply import analyse
    from gapfloor.analysis.episodes import read_inputs
    from gapfloor.analysis.export import write_results
    from gapfloor.analysis.foreign_formats import read_labelled, rliable_scores, write_scores

    if source is None and not sb3:
        raise UsageError("Give a store or an episode file, or --sb3 files.")
    inputs = read_labelled(source, sb3) if sb3 else read_inputs(source, options=table)
    results = analyse(inputs, plan)
    if out is not None:
        write_results(results, out)
    if rliable is not None:
        write_scores(rliable, rliable_scores(results))
    if as_json:
        print_json(results.to_dict())
    else:
        _print(results)
    for problem in results.problems[:_SHOWN]:
        click.echo(f"{problem.kind}: {problem.where}: {problem.what}", err=True)
    if len(results.problems) > _SHOWN:
        click.echo(f"and {len(results.problems) - _SHOWN} more problems (see --json).", err=True)


def _print(results: AnalysisResults) -> None:
    from gapfloor.text_tables import counted

    plan, source = results.plan, results.source
    size = ", ".join(
        counted(n, noun)
        for n, noun in ((source.n_episodes, "episode"), (source.n_cells, "cell"), (source.n_runs, "run"))
    )
    click.echo(f"{size}. Plan {plan.name} ({plan.hash[:12]}): {plan.status}.")
    if results.floor_comparisons:
        click.echo("\nCompared with the floor")
        headings = [*_COMPARISON_HEADINGS, _other_call(plan.floor_method)]
        print_table(headings, [_comparison(row) for row in results.floor_comparisons])
    if results.gaps:
        click.echo("\nGap (train - test)")
        print_table([*_GAP_HEADINGS, _other_call(plan.gap_method)], [_gap(row) for row in results.gaps])


def _other_call(method: str) -> str:
    """The heading of the call that the plan did not ask for."""
    return "paper's call" if method == "recommended" else "recommended call"


def _comparison(row: FloorComparisonResult) -> list[str]:
    from gapfloor.text_tables import ends_text, p_text, with_error

    test = row.test
    return [
        row.game, row.budget, row.rule, row.level_set, str(row.n), with_error(test.mean, test.sem),
        with_error(test.floor, test.floor_sem), f"{row.call_delta:+.2f} {ends_text(row.call_interval)}",
        p_text(row.call_p), f"{test.runs_above}/{row.n}", *_calls(row),
    ]  # fmt: skip


def _gap(row: GapResult) -> list[str]:
    from gapfloor.text_tables import ends_text, number, p_text

    gap = row.gap
    return [
        row.game, row.budget, row.rule, str(row.n), f"{gap.mean:+.2f} {ends_text(gap.ci)}",
        ends_text(gap.t_interval), p_text(gap.p_fisher), p_text(row.p_holm), number(gap.stouffer_z),
        *_excess(row), *_gap_calls(row),
    ]  # fmt: skip


def _calls(row: FloorComparisonResult) -> tuple[str, str]:
    """The call of the plan's method, then that of the other one."""
    call = row.call_label
    if call == "not distinguishable" and row.robust.equivalence_unreachable:
        call = f"{call} (equivalence unreachable)"
    assert row.recommended is not None
    if row.method == "recommended":
        return (f"{call} (unreliable: {row.doubt})" if row.doubt else call), row.decision.call
    return call, row.recommended.label


def _excess(row: GapResult) -> tuple[str, str, str]:
    from gapfloor.text_tables import MISSING, ends_text, p_text

    assert row.recommended is not None
    test = row.recommended.test
    if math.isnan(test.excess):
        return MISSING, MISSING, MISSING
    levels = "+".join(str(n) for n in test.n_levels)
    if test.n_levels != test.n_levels_played:
        levels += f" of {'+'.join(str(n) for n in test.n_levels_played)}"
    return (
        f"{test.excess:+.2f} {ends_text(row.recommended.interval)}",
        p_text(row.recommended.p_holm),
        levels,
    )


def _gap_calls(row: GapResult) -> tuple[str, str]:
    assert row.recommended is not None
    if row.method == "recommended":
        return row.call_label, row.paper_call
    return row.call_label, row.recommended.label
