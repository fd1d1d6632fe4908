"""`gapfloor power`: how many runs, floor episodes or levels a call needs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gapfloor.cli.options import print_json
from gapfloor.cli.table_options import table_options
from gapfloor.errors import UsageError
from gapfloor.text_tables import counted

if TYPE_CHECKING:
    from gapfloor.analysis.episodes import Inputs
    from gapfloor.analysis.table_options import TableOptions


@click.command(name="power")
@click.argument("pilot", type=click.Path(path_type=Path), required=False)
@click.option(
    "--plan", type=click.Path(path_type=Path), help="Take alpha and the primary rule from this plan."
)
@click.option("--rule", help="Rule of the pilot's comparisons.  [default: the plan's primary rule]")
@click.option("--level-set", default="test", show_default=True, help="Level set of the pilot's comparisons.")
@click.option("--delta", type=float, help="Without a pilot: the difference to the floor worth finding.")
@click.option("--sem", type=float, help="Without a pilot: the SEM over runs ...")
@click.option("--runs", type=click.IntRange(min=2), help="... at this number of runs.")
@click.option("--floor-sem", type=float, help="Without a pilot: the floor's SEM ...")
@click.option("--floor-episodes", type=click.IntRange(min=2), help="... at this number of episodes.")
@click.option(
    "--family", type=click.IntRange(min=1), help="Games in the family.  [default: those of the pilot, or 1]"
)
@click.option("--power", "wanted", type=float, default=0.8, show_default=True, help="The power to reach.")
@click.option("--alpha", type=float, default=None, help="Level of the call.  [default: the plan's, or 0.05]")
@click.option("--simulations", type=click.IntRange(min=0), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options(with_rule=False)
def command(
    pilot: Path | None,
    plan: Path | None,
    rule: str | None,
    level_set: str,
    delta: float | None,
    sem: float | None,
    runs: int | None,
    floor_sem: float | None,
    floor_episodes: int | None,
    family: int | None,
    wanted: float,
    alpha: float | None,
    simulations: int,
    seed: int,
    as_json: bool,
    table: TableOptions,
) -> None:
    """How many runs, floor episodes or levels a call needs for a given power after Holm.

    From a PILOT (a store or an episode file), or from --delta, --sem, --runs, --floor-sem, --floor-episodes.
    """
    import numpy as np

    from gapfloor.analysis.episodes import read_inputs
    from gapfloor.plan.lock import load_plan

    if not 0 < wanted < 1:
        raise UsageError(f"--power must lie between 0 and 1, but is {wanted}.")
    if alpha is None:
        alpha = load_plan(plan).plan.floor.alpha if plan is not None else 0.05
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha must lie between 0 and 1, but is {alpha}.")
    given = {
        "--delta": delta, "--sem": sem, "--runs": runs, "--floor-sem": floor_sem, "--floor-episodes": floor_episodes
    }  # fmt: skip
    if pilot is not None:
        if any(value is not None for value in given.values()):
            raise UsageError("Give a pilot, or --delta and the SEMs, not both.")
        rows = _from_pilot(read_inputs(pilot, options=table), plan, rule, level_set, family, wanted, alpha)
    else:
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise UsageError(f"Without a pilot {', '.join(missing)} must be given.")
        rows = [_from_numbers(delta, sem, runs, floor_sem, floor_episodes, family or 1, wanted, alpha)]
    if simulations:
        _simulate(rows, alpha, simulations, np.random.default_rng(seed))
    public = [{key: value for key, value in row.items() if not key.startswith("_")} for row in rows]
    if as_json:
        print_json({"power": wanted, "alpha": alpha, "comparisons": public})
        return
    click.echo(
        f"For {wanted:.0%} power at alpha {alpha:g} after Holm over {counted(rows[0]['family_size'], 'game')}:"
    )
    for row in public:
        click.echo(_sentence(row))


def _from_pilot(
    pilot: Inputs,
    plan: Path | None,
    rule: str | None,
    level_set: str,
    family: int | None,
    wanted: float,
    alpha: float,
) -> list[dict[str, Any]]:
    from gapfloor.analysis.pilot import read_pilot
    from gapfloor.statistics.power import required_levels

    found = read_pilot(pilot, plan, rule=rule, level_set=level_set)
    rows = []
    for comparison in found:
        size = family or comparison.row.decision.family_size
        row = comparison.row
        answer = _answer(
            comparison.effect, row.n, row.test.floor_n, size, wanted, alpha, margin=row.test.margin
        )
        answer |= {"game": row.game, "budget": row.budget, "rule": row.rule, "level_set": row.level_set}
        if comparison.generator is not None:
            answer["n_levels"] = comparison.n_levels
            answer["required_levels"] = required_levels(
                comparison.generator, n_runs=row.n, family_size=size, alpha=alpha, power=wanted
            )
        rows.append(answer)
    return rows


def _from_numbers(
    delta: float | None,
    sem: float | None,
    runs: int | None,
    floor_sem: float | None,
    floor_episodes: int | None,
    family: int,
    wanted: float,
    alpha: float,
) -> dict[str, Any]:
    from gapfloor.statistics.power import Effect

    assert delta is not None
    assert sem is not None
    assert runs is not None
    assert floor_sem is not None
    assert floor_episodes is not None
    if sem < 0 or floor_sem < 0:
        raise UsageError("A SEM cannot be negative.")
    effect = Effect(delta, sem * math.sqrt(runs), floor_sem * math.sqrt(floor_episodes))
    return _answer(effect, runs, floor_episodes, family, wanted, alpha, margin=None)


def _answer(
    effect: Any, n_runs: int, n_floor: int, family: int, wanted: float, alpha: float, *, margin: float | None
) -> dict[str, Any]:
    from gapfloor.statistics.component_power import floor_episodes_for_equivalence
    from gapfloor.statistics.power import floor_power, required_floor_episodes, required_runs

    shared: dict[str, Any] = {"family_size": family, "alpha": alpha}
    return {
        "delta": effect.delta,
        "n_runs": n_runs,
        "n_floor": n_floor,
        "family_size": family,
        "power_now": floor_power(effect, n_runs=n_runs, n_floor=n_floor, **shared),
        "required_runs": required_runs(effect, n_floor=n_floor, power=wanted, **shared),
        "required_floor_episodes": required_floor_episodes(effect, n_runs=n_runs, power=wanted, **shared),
        # With as many runs as one likes: what the floor alone must allow.
        "floor_episodes_for_equivalence": floor_episodes_for_equivalence(
            replace(effect, delta=0.0), n_runs=None, margin=margin, power=wanted, **shared
        )
        if margin
        else None,
        "_effect": effect,
    }


def _simulate(rows: list[dict[str, Any]], alpha: float, simulations: int, rng: Any) -> None:
    """Play each comparison at its required runs, the rest of its family without effect (the hardest case)."""
    import dataclasses

    from gapfloor.statistics.power import simulate_family

    for row in rows:
        n = row["required_runs"]
        row["simulated_power"] = row["simulation_error"] = None
        if n is None:
            continue
        others = [dataclasses.replace(row["_effect"], delta=0.0)] * (row["family_size"] - 1)
        played = simulate_family(
            [row["_effect"], *others],
            n_runs=[n] * row["family_size"],
            n_floor=row["n_floor"],
            rng=rng,
            alpha=alpha,
            n_simulations=simulations,
        )
        row["simulated_power"], row["simulation_error"] = played.rejected[0], played.error


def _sentence(row: dict[str, Any]) -> str:
    name = (
        " ".join(row[key] for key in ("game", "budget", "rule", "level_set") if row.get(key))
        or "the comparison"
    )
    runs = row["required_runs"]
    now = f"power now {row['power_now']:.2f} with {counted(row['n_runs'], 'run')}"
    parts = [f"{name}: delta {row['delta']:+.2f}, {now}"]
    parts.append(f"needs {counted(runs, 'run')}" if runs else "no number of runs reaches it")
    if row.get("simulated_power") is not None:
        parts[-1] += f" (simulated {row['simulated_power']:.2f} ± {row['simulation_error']:.2f})"
    episodes = row["required_floor_episodes"]
    parts.append(
        f"or {counted(episodes, 'floor episode')}" if episodes else "more floor episodes alone do not help"
    )
    if "required_levels" in row:
        levels = row["required_levels"]
        parts.append(
            f"for the generator {counted(levels, 'level')}"
            if levels
            else "for the generator more levels alone do not help"
        )
    return "; ".join(parts) + "."
