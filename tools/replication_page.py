"""Fill in docs/replication.md and research-notes/replication-tables.md: datasets next to the paper's values.

    python tools/replication_page.py --write

Run it again when data/miniature or data/miniature-census has more cells. Without --write it prints the parts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapfloor.analysis.apply import analyse
from gapfloor.analysis.results import AnalysisResults
from gapfloor.errors import CheckFailedError
from gapfloor.plan.lock import load_plan
from gapfloor.study.graph import build_graph, estimate
from gapfloor.study.model import Study
from gapfloor.tables.cells import count_word
from replication_findings import COLUMNS, Evidence, Judged, Seen, State, judge
from replication_tables import build_tables, by_recommended, references

ROOT = Path(__file__).parents[1]
DATA, STUDY = ROOT / "data" / "miniature", ROOT / "studies" / "miniature.toml"
CENSUS = ROOT / "data" / "miniature-census"
LONG, PUBLIC, MAZE, SMALL, UNTRAINED = (
    ROOT / "data" / name for name in ("miner-1M", "public", "public-maze", "public-small", "untrained")
)
PLAN = ROOT / "studies" / "miniature-plan.toml"
PUBLIC_PLAN = ROOT / "studies" / "public" / "baseline-plan.toml"
LONG_PLAN = ROOT / "studies" / "miner-1M-plan.toml"
#: The pages and the parts that each of them holds.
PAGES = {
    "README.md": ("story", "count"),
    "docs/replication.md": ("findings", "public", "maze", "calls", "long", "costs"),
    "research-notes/replication-tables.md": (
        "all findings",
        "tables",
        "state",
        "references",
        "guessing",
        "each long run",
        "whole maze",
        "small agents",
        "census",
    ),
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="Fill in the pages instead of printing the parts."
    )
    given = parser.parse_args()
    parts = build_parts()
    if not given.write:
        sys.stdout.write("\n\n".join(parts.values()) + "\n")
        return
    for name, held in PAGES.items():
        page = ROOT / name
        filled = fill_in(page.read_text(encoding="utf-8"), {part: parts[part] for part in held})
        page.write_text(filled, encoding="utf-8")


def fill_in(page: str, parts: dict[str, str]) -> str:
    """The page with its generated parts replaced."""
    for name, text in parts.items():
        pattern = rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)"
        page, found = re.subn(
            pattern, lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page, flags=re.S
        )
        if found != 1:
            sys.exit(f"The page has {found} places for '{name}', where it needs one.")
    return page


def build_parts() -> dict[str, str]:
    """The generated parts of the page by name."""
    paper = json.loads((ROOT / "tests" / "data" / "paper_tables.json").read_text(encoding="utf-8"))
    results, words = analysed(DATA, PLAN)
    public, public_words = analysed(PUBLIC, PUBLIC_PLAN)
    long, long_words = analysed(LONG, LONG_PLAN)
    evidence = {"100k": Evidence(results), "1M": Evidence(long), "25M, public": Evidence(public)}
    networks = untrained_episodes()
    judged = judge(paper, {**evidence, "untrained": Evidence(untrained(networks))})
    return {
        "state": state(results, words),
        "story": story(public, public_words),
        "count": findings(judged).split("\n")[0],
        "findings": findings(judged),
        "all findings": findings_table(judged),
        "public": public_agents(public, public_words),
        "maze": maze(_MAZE_STEPS),
        "whole maze": maze(),
        "small agents": small_agents(),
        "calls": calls(paper, results),
        "references": references(results),
        "guessing": guessing(networks),
        "long": long_runs(long, long_words),
        "each long run": each_long_run(long),
        "census": census(results),
        "costs": costs(),
        "tables": build_tables(paper, results, DATA),
    }


def analysed(data: Path, plan: Path) -> tuple[AnalysisResults, str]:
    """The results under the locked plan, or without it while cells are missing, and which of the two they are."""
    try:
        return analyse(
            data, plan=plan
        ), "All cells of the plan have been played: the calls are those of the locked plan."
    except CheckFailedError:
        words = (
            "Cells of the plan are missing, so the locked plan does not allow an analysis yet. What follows is "
            "exploratory: the recommended tests on the games that are complete, corrected over these games only."
        )
        return analyse(data), words


def untrained_episodes() -> pa.Table:
    """Episodes of networks that were never trained, labelled as runs of an agent, and of the floor on the same draws.

    By argmax they are references of the studies; sampled, and by argmax in one more game, they have a dataset. For a
    game that is in several of them, the first one counts.
    """
    parts: list[pa.Table] = []
    for data in (UNTRAINED, PUBLIC, DATA):
        table = pq.read_table(data / "episodes.parquet")
        known = {
            game
            for part in parts
            for game in part.filter(pc.equal(part["rule"], "greedy"))["game"].unique().to_pylist()
        }
        is_new = pc.invert(pc.is_in(table["game"], pa.array(sorted(known), pa.string())))
        is_reference = pc.and_(is_new, pc.equal(table["reference"], "random-weights:impala"))
        networks = _labelled(table.filter(is_reference), agent="untrained", reference="", rule="greedy")
        runs = table.filter(pc.equal(table["agent"], "untrained"))
        played = [_labelled(part, budget="none") for part in (networks, runs)]
        games = {game for part in played for game in part["game"].unique().to_pylist()}
        is_floor = pc.and_(
            pc.equal(table["reference"], "uniform"),
            pc.is_in(table["game"], pa.array(sorted(games), pa.string())),
        )
        parts += [*played, table.filter(is_floor)]
    together = pa.concat_tables(part.cast(parts[0].schema) for part in parts)
    return together.group_by(together.column_names).aggregate(
        []
    )  # two schedules share the floor's first episodes


def _labelled(table: pa.Table, **labels: str) -> pa.Table:
    for name, value in labels.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array([value] * len(table), pa.string()))
    return table


def untrained(episodes: pa.Table) -> AnalysisResults:
    """The results of untrained networks, each of which counts as a run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "untrained.parquet"
        pq.write_table(episodes, path)
        return analyse(path)


def guessing(episodes: pa.Table) -> str:
    """Random-weight guessing: the distribution of untrained networks on held-out levels."""
    table = episodes.to_pandas()
    table = table[table["level_set"] == "test"]
    head = (
        "| game | rule | networks | mean | lowest | highest | above the floor | floor |\n"
        + "|---" * 8
        + "|\n"
    )
    rows = []
    for (game, rule), part in table[table["agent"] == "untrained"].groupby(["game", "rule"]):
        values = part.groupby("seed")["episode_return"].mean()
        floors = table[
            (table["reference"] == "uniform") & (table["game"] == game) & table["draw"].isin(part["draw"])
        ]
        floor = floors["episode_return"].mean()
        rows.append(
            f"| {game} | {rule} | {len(values)} | {values.mean():.2f} | {values.min():.2f} | {values.max():.2f} | "
            f"{int((values > floor).sum())} | {floor:.2f} |"
        )
    return head + "\n".join(rows)


def state(results: AnalysisResults, words: str) -> str:
    """What has been measured under which plan."""
    lock = load_plan(PLAN).lock
    assert lock is not None
    study = Study.read(STUDY)
    games = results.source.games
    missing = [game for game in study.games if game not in games]
    lines = [
        f"- Plan `{lock.plan.hash[:12]}`, locked {lock.plan.locked_at} with {lock.plan.cells_seen} cells seen; "
        f"addendum `{lock.addenda[0].hash[:12]}` ({lock.addenda[0].name}), locked {lock.addenda[0].locked_at}.",
        f"- Complete games: {', '.join(games) or 'none'}. Still to be evaluated: {', '.join(missing) or 'none'}.",
        f"- {words}",
    ]
    if results:
        lines.insert(
            2, f"- {results.source.n_episodes:,} episodes of {results.source.n_runs} runs and the references."
        )
    return "\n".join(lines)


def findings(judged: Sequence[Judged]) -> str:
    """How many findings have which state, and those that are contradicted by some agents."""
    counts = Counter(each.state for each in judged)
    order: tuple[State, ...] = (
        "shown", "shown, and by untrained networks", "mixed", "contradicted", "not yet", "no data",
    )  # fmt: skip
    summary = "; ".join(f"{counts[state]} {state}" for state in order if counts[state])
    contradicted = [each for each in judged if each.state in ("mixed", "contradicted")]
    return (
        f"Of {len(judged)} findings: {summary}.\n\nContradicted by at least one set of agents:\n\n"
        f"{findings_table(contradicted)}"
    )


def findings_table(judged: Sequence[Judged]) -> str:
    """One row per finding."""
    names = (
        "finding of the paper",
        "paper",
        "100k, ours",
        "1M, ours",
        "25M, public agents",
        "untrained networks the same?",
    )
    head = f"| {' | '.join(names)} | state |"
    rows = []
    for each in judged:
        cells = [_seen(each.seen.get(name)) for name in COLUMNS[:3]]
        same = each.seen.get("untrained")
        answer = "" if same is None else f"{'yes' if same.verdict == 'shown' else 'no'}: {same.text}"
        rows.append(
            f"| {each.finding.sentence} | {each.finding.paper} | {' | '.join(cells)} | {answer} | {each.state} |"
        )
    return "\n".join([head, "|" + "---|" * 7, *rows])


def _seen(seen: Seen | None) -> str:
    return "" if seen is None else f"{seen.text} ({seen.verdict})"


def public_agents(results: AnalysisResults, words: str) -> str:
    """Returns, calls and gaps of other people's agents, with the stricter references."""
    stricter = "Held-out returns next to the stricter references:"
    tables = f"{returns_and_gaps(results)}\n\n{stricter}\n\n{references(results)}"
    return f"{under_plan(PUBLIC_PLAN, results, words)}\n\n{tables}"


def under_plan(plan: Path, results: AnalysisResults, words: str) -> str:
    """Which plan was locked when, and what has been played of it."""
    lock = load_plan(plan).lock
    assert lock is not None
    return (
        f"Plan `{lock.plan.hash[:12]}`, locked {lock.plan.locked_at} with {lock.plan.cells_seen} cells seen "
        f"({lock.plan.seen_in}). {results.source.n_episodes:,} episodes of {results.source.n_runs} runs and the "
        f"references. {words}"
    )


def returns_and_gaps(results: AnalysisResults) -> str:
    """Returns, calls and gaps of each game."""
    head = (
        "| game | rule | training levels | floor | call | held-out | floor | call | gap | floor's gap | call |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    evidence, rows = Evidence(results), []
    for game in results.source.games:
        for rule in ("sampled", "greedy", "merged"):
            gap, cells = evidence.gap(game, rule), []
            for level_set in ("train", "test"):
                row = evidence.comparison(game, rule, level_set)
                cells += (
                    []
                    if row is None
                    else [f"{row.mean:.2f} ± {row.sem:.2f} | {row.floor:.2f} | {row.decision.label}"]
                )
            if len(cells) == 2 and gap is not None:
                rows.append(
                    f"| {game} | {rule} | {' | '.join(cells)} | {gap.gap:+.2f} ± {gap.gap_sem:.2f} | "
                    f"{gap.floor_gap:+.2f} | {gap.decision.label} |"
                )
    return head + "\n".join(rows)


def story(results: AnalysisResults, words: str) -> str:
    """The README's story of the public agents: three games in words."""
    evidence = Evidence(results)
    heist, gap = evidence.comparison("heist", "sampled"), evidence.gap("heist", "sampled")
    sampled, greedy = (evidence.gap("coinrun", rule) for rule in ("sampled", "greedy"))
    assert heist is not None
    assert gap is not None
    assert sampled is not None
    assert greedy is not None
    chance = {"above": "better than", "below": "worse than"}.get(
        heist.decision.call, "not distinguishable from"
    )
    text = (
        f"Other people trained {count_word(heist.n).plain} PPO agents on ProcGen's heist for 25M steps. Their "
        f"generalization gap is {gap.gap:.2f}, and their held-out return {heist.mean:.2f}. Random play scores "
        f"**{heist.floor:.2f}** on the same levels: on new levels these agents are {chance} chance. "
        f"In coinrun the action rule decides: with sampled actions the gap is {sampled.gap:.2f}, and with the argmax "
        f"of the same weights {greedy.gap:.2f}.{_constant_action()}"
    )
    command = "gapfloor analyse data/public"
    status = "exploratory calls"
    if "exploratory" not in words:
        command += f" --plan {PUBLIC_PLAN.relative_to(ROOT).as_posix()}"
        page = "docs/replication.md#agents-that-other-people-trained"
        status = f"calls of a locked plan; [all numbers, and what was known before]({page})"
    return f"{text}\n\n(`{command}`; means over runs; {status}.)"


def _constant_action() -> str:
    """What one constant action scores in bigfish, where every run scores less; a description, no test."""
    table = pq.read_table(PUBLIC / "episodes.parquet")
    for name, value in (("game", "bigfish"), ("level_set", "test")):
        table = table.filter(pc.equal(table[name], value))
    means = table.group_by(["rule", "seed"]).aggregate([("episode_return", "mean")]).to_pylist()
    runs = [row["episode_return_mean"] for row in means if row["rule"] == "sampled"]
    best = next(row["episode_return_mean"] for row in means if row["rule"] == "best-constant")
    if max(runs) >= best:
        return ""
    return (
        f" In bigfish one constant action, repeated without looking, scores **{best:.2f}** on held-out levels: more "
        f"than each of the runs ({min(runs):.2f} to {max(runs):.2f})."
    )


#: Millions of steps on the page; the table of all checkpoints is among the notes.
_MAZE_STEPS = (5, 10, 15, 20, 25, 30, 45, 65, 85, 105)


def maze(shown: Sequence[int] | None = None) -> str:
    """Returns of one public maze run over its training, with the floor; errors are over episodes."""
    episodes = pq.read_table(MAZE / "episodes.parquet").to_pandas()
    runs = episodes[episodes["agent"] == "maze_normal"]
    points = runs.assign(steps=runs["budget"].str.removesuffix("M").astype(int)).groupby("steps")
    rows = [_single_run("uniform (the floor)", episodes[episodes["reference"] == "uniform"])]
    rows += [_single_run(f"{steps}M", point) for steps, point in points if shown is None or steps in shown]
    return _single_runs("steps", rows)


def small_agents() -> str:
    """Returns of edomerli's agents, one run per game, with the floor; errors are over episodes."""
    episodes = pq.read_table(SMALL / "episodes.parquet").to_pandas()
    rows = []
    for game, part in episodes.groupby("game"):
        rows.append(_single_run(f"{game}, uniform (the floor)", part[part["reference"] == "uniform"]))
        rows.append(_single_run(f"{game}, the agent", part[part["agent"] == "edomerli"]))
    return _single_runs("who plays", rows)


#: The columns of a table of single runs.
_SINGLE = [(rule, level_set) for rule in ("sampled", "greedy") for level_set in ("train", "test")]


def _single_run(name: str, episodes: Any) -> str:
    """One row; random play has one return per level set, whatever the rule."""

    def measured(rule: str, level_set: str) -> str:
        mine = episodes[(episodes["level_set"] == level_set) & episodes["rule"].isin((rule, "uniform"))]
        return f"{mine['episode_return'].mean():.2f} ± {mine['episode_return'].sem():.2f}"

    return f"| {name} | " + " | ".join(measured(*cell) for cell in _SINGLE) + " |"


def _single_runs(first: str, rows: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(_single_names())} |\n" + "|---" * 5 + "|\n" + "\n".join(rows)


def _single_names() -> list[str]:
    return [f"{rule}, {'training' if of == 'train' else 'held-out'}" for rule, of in _SINGLE]


#: Quantities of a difference as the page calls them.
_QUANTITIES = {"train": "training", "test": "held-out", "gap": "gap"}


def long_runs(results: AnalysisResults, words: str) -> str:
    """The miner runs of a million steps under their locked plan."""
    differences = [
        (f"{row.rule} − {row.rule_b}, {_QUANTITIES[row.quantity]}", row.difference) for row in results.pairs
    ] + [
        (f"{row.agent} − {row.agent_b}, {row.rule}, {_QUANTITIES[row.quantity]}", row.difference)
        for row in results.encoders
        if row.rule == "sampled"
    ]
    compared = "\n".join(
        f"| {name} | {each.value:+.2f} | {'< 0.001' if each.p < 0.001 else f'{each.p:.3f}'} |"
        for name, each in differences
    )
    return (
        f"{under_plan(LONG_PLAN, results, words)}\n\n{returns_and_gaps(results)}\n\n"
        "Differences of rules (paired over runs) and of encoders:\n\n| difference | estimate | p |\n|---|---|---|\n"
        f"{compared}"
    )


def each_long_run(results: AnalysisResults) -> str:
    """The same runs next to the stricter references, and each of them by itself."""
    table = pq.read_table(LONG / "episodes.parquet").to_pandas()
    means = (
        table[table["reference"] == ""]
        .groupby(["agent", "seed", "rule", "level_set"])["episode_return"]
        .mean()
    )
    head = f"| run | {' | '.join(_single_names())} |\n" + "|---" * 5 + "|\n"
    rows = [
        f"| {agent}, seed {seed:.0f} | "
        + " | ".join(f"{means[agent, seed, *cell]:.2f}" for cell in _SINGLE)
        + " |"
        for agent, seed in sorted({key[:2] for key in means.index})
    ]
    return f"{references(results)}\n\nEach run by itself:\n\n{head}" + "\n".join(rows)


def calls(paper: dict[str, Any], results: AnalysisResults) -> str:
    """Held-out returns and calls of both, game by game."""
    evidence, unmask = Evidence(results), {row["env"]: row for row in paper["unmask"]}
    head = (
        "| game | rule | paper: return (floor), call | ours: return (floor) | call by the paper's plan | "
        "recommended call |\n|---|---|---|---|---|---|\n"
    )
    rows = []
    for game in Study.read(STUDY).games:
        for rule in ("sampled", "greedy"):
            printed = unmask[game]
            ret, floor = printed[rule]["ret"], printed["floor"]
            theirs = f"{ret['mean']:.2f} ± {ret['sem']:.2f} ({floor['mean']:.2f}), {printed[rule]['call']}"
            row = evidence.comparison(game, rule)
            if row is None:
                rows.append(f"| {game} | {rule} | {theirs} | | | |")
                continue
            ours = f"{row.mean:.2f} ± {row.sem:.2f} ({row.floor:.2f})"
            recommended = by_recommended(results, row).decision.label
            rows.append(f"| {game} | {rule} | {theirs} | {ours} | {row.call} | {recommended} |")
    return head + "\n".join(rows)


def census(results: AnalysisResults) -> str:
    """Held-out returns by both designs, with the calls of the recommended method."""
    every_level = analyse(CENSUS, plan=ROOT / "studies" / "miniature-census-plan.toml")
    designs = [Evidence(design) for design in (results, every_level)]
    head = "| game | rule | draws: return − floor | call | census: return − floor | call |\n|---|---|---|---|---|---|\n"
    rows = []
    for game in every_level.source.games:
        for rule in ("sampled", "greedy"):
            cells = []
            for design in designs:
                row = by_recommended(design.results, design.comparison(game, rule))
                low, high = row.delta.interval
                cells += [f"{row.delta.value:+.2f} [{low:+.2f}, {high:+.2f}]", row.decision.label]
            rows.append(f"| {game} | {rule} | {' | '.join(cells)} |")
    played = every_level.source
    size = f"The census has {played.n_episodes:,} episodes of {played.n_runs} runs and the floor, each level once."
    return head + "\n".join(rows) + f"\n\n{size}"


def costs() -> str:
    """What the paper's two studies would take by the shipped rates."""
    head = (
        "| study | runs | cells | core-hours | training alone | longest run | days on 2 cores | hours on 64 cores |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for name in ("miniature", "paper-8m", "paper-25m"):
        study = Study.read(ROOT / "studies" / f"{name}.toml")
        size = estimate(study)
        longest = max(task.seconds(study) for task in build_graph(study) if task.kind == "train") / 3600
        hours, training = sum(size.core_seconds.values()) / 3600, size.core_seconds["train"] / 3600
        cells = size.n_cells + size.n_addendum_cells + size.n_floor_cells
        rows.append(
            f"| `studies/{name}.toml` | {size.n_runs} | {cells:,} | {hours:,.0f} | {training:,.0f} | "
            f"{longest:,.1f} h | {size.seconds_on(2) / 86400:,.1f} | {size.seconds_on(64) / 3600:,.1f} |"
        )
    return head + "\n".join(rows)


if __name__ == "__main__":
    main()
