"""`gapfloor analyse`: apply a plan's tests to a store or to anyone's episode file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json
from gapfloor.cli.table_options import table_options
from gapfloor.errors import UsageError

if TYPE_CHECKING:
    from gapfloor.analysis.floor_results import FloorComparisonResult
    from gapfloor.analysis.gap_results import GapResult
    from gapfloor.analysis.results import AnalysisResults
    from gapfloor.analysis.table_options import TableOptions

_SHOWN = 20


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
    plan, source = results.plan, results.source
    click.echo(
        f"{source.n_episodes} episodes, {source.n_cells} cells, {source.n_runs} runs. "
        f"Plan {plan.name} ({plan.hash[:12]}): {plan.status}."
    )
    if results.floor_comparisons:
        click.echo("\nAgainst the floor")
        _table(
            (
                "game",
                "budget",
                "rule",
                "levels",
                "n",
                "return",
                "floor",
                "delta [interval]",
                "Holm p",
                "k/n",
                "call",
                "paper's call" if plan.floor_method == "recommended" else "recommended call",
            ),
            [
                (
                    row.game,
                    row.budget,
                    row.rule,
                    row.level_set,
                    str(row.n),
                    f"{_number(row.test.mean)} ± {_number(row.test.sem)}",
                    f"{_number(row.test.floor)} ± {_number(row.test.floor_sem)}",
                    f"{row.test.delta:+.2f} {_interval(row.call_interval)}",
                    _p(row.call_p),
                    f"{row.test.runs_above}/{row.n}",
                    *_calls(row),
                )
                for row in results.floor_comparisons
            ],
        )
    if results.gaps:
        click.echo("\nGap (train - test)")
        _table(
            (
                "game",
                "budget",
                "rule",
                "n",
                "gap [95% CI]",
                "t interval",
                "Fisher p",
                "Holm p",
                "Stouffer Z",
                "excess [interval]",
                "its Holm p",
                "levels",
                "call",
                "paper's call" if plan.gap_method == "recommended" else "recommended call",
            ),
            [
                (
                    row.game,
                    row.budget,
                    row.rule,
                    str(row.n),
                    f"{row.gap.mean:+.2f} [{_number(row.gap.ci[0])}, {_number(row.gap.ci[1])}]",
                    f"[{_number(row.gap.t_interval[0])}, {_number(row.gap.t_interval[1])}]",
                    _p(row.gap.p_fisher),
                    _p(row.p_holm),
                    f"{row.gap.stouffer_z:.2f}",
                    *_excess(row),
                    *_gap_calls(row),
                )
                for row in results.gaps
            ],
        )


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
    assert row.recommended is not None
    test = row.recommended.test
    if math.isnan(test.excess):
        return "–", "–", "–"
    levels = "+".join(str(n) for n in test.n_levels)
    if test.n_levels != test.n_levels_played:
        levels += f" of {'+'.join(str(n) for n in test.n_levels_played)}"
    return (
        f"{test.excess:+.2f} {_interval(row.recommended.interval)}",
        _p(row.recommended.p_holm),
        levels,
    )


def _gap_calls(row: GapResult) -> tuple[str, str]:
    assert row.recommended is not None
    if row.method == "recommended":
        return row.call_label, row.paper_call
    return row.call_label, row.recommended.label


def _interval(pair: tuple[float, float]) -> str:
    return f"[{_number(pair[0])}, {_number(pair[1])}]"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _p(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
