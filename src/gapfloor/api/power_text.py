"""What `power` advises, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapfloor.statistics.designs import StudyDesign
from gapfloor.text_tables import counted

if TYPE_CHECKING:
    from gapfloor.api.power import ComparisonPower, PowerAdvice


def power_sentences(advice: PowerAdvice) -> list[str]:
    """The designs that each comparison needs, a few lines per comparison."""
    calls = "the recommended calls" if advice.method == "recommended" else "the paper's calls"
    size = advice.comparisons[0].family_size
    games = counted(size, "game") + (" (at its first, hardest step)" if size > 1 else "")
    lines = [f"For {advice.power:.0%} power at alpha {advice.alpha:g} after Holm over {games}, by {calls}:"]
    for row in advice.comparisons:
        lines += _comparison(row, budget=advice.budget)
    lines.append(
        f"A run is taken to cost {advice.costs.run:g} and a floor episode {advice.costs.floor_episode:g} "
        "(--run-cost, --floor-cost)."
    )
    return lines


def _comparison(row: ComparisonPower, *, budget: float | None) -> list[str]:
    name = (
        " ".join(part for part in (row.game, row.budget, row.rule, row.level_set) if part) or "the comparison"
    )
    size = _size(row.n_runs, row.n_floor)
    floor = ", whose spread is a careful guess" if row.floor_is_guessed else ""
    lines = [f"{name}: delta {row.delta:+.2f}, power now {row.power_now:.2f} with {size}{floor}"]
    cheapest = _design(row.design) or "no design reaches it"
    if row.simulated_power is not None:
        cheapest += f" (simulated power {row.simulated_power:.2f} ± {row.simulation_error:.2f})"
    lines.append(f"  cheapest: {cheapest}")
    runs = counted(row.required_runs, "run") if row.required_runs else "no number of runs reaches it"
    episodes = row.required_floor_episodes
    more = counted(episodes, "floor episode") if episodes else "no number of floor episodes reaches it"
    lines.append(f"  with this floor: {runs}; with these runs: {more}")
    lines.append(f"  given the pilot's own error: {_assured(row)}")
    if row.floor_episodes_for_equivalence is not None:
        least = counted(row.floor_episodes_for_equivalence, "floor episode")
        after = " after Holm" if row.family_size > 1 else ""
        lines.append(f"  to call policies that equal the floor equivalent{after}: {least}, with enough runs")
    if budget is not None:
        bought = _design(row.affordable)
        power = f", power {row.affordable.power:.2f}" if row.affordable else ""
        lines.append(f"  for a budget of {budget:g}: {bought or 'not even the least number of runs'}{power}")
    if row.n_levels is not None:
        levels = (
            counted(row.required_levels, "level") if row.required_levels else "no number of levels reaches it"
        )
        lines.append(
            f"  for the generator of levels: {_design(row.generator_design) or 'no design reaches it'}; "
            f"with these runs: {levels}"
        )
    return lines


def _assured(row: ComparisonPower) -> str:
    if row.assured is None:
        return "none, because it leaves the difference open; give --smallest-delta or a larger pilot"
    return f"{_design(row.assured)} reach it with 80% probability"


def _design(design: StudyDesign | None) -> str:
    if design is None:
        return ""
    if design.n_levels is not None:
        return f"{counted(design.n_runs, 'run')} on {counted(design.n_levels, 'level')}"
    return _size(design.n_runs, design.n_floor)


def _size(n_runs: int, n_floor: int) -> str:
    return f"{counted(n_runs, 'run')} and {counted(n_floor, 'floor episode')}"
