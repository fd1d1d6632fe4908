"""Fill in docs/replication.md and docs/replication-tables.md: the miniature's datasets and the paper's printed values.

    python tools/replication_page.py --write docs

Run it again when data/miniature or data/miniature-census has more cells. Without --write it prints the parts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

from gapfloor.analysis import analyse
from gapfloor.analysis.results import AnalysisResults
from gapfloor.errors import CheckFailedError
from gapfloor.plan.lock import load_plan
from gapfloor.study.costs import estimate
from gapfloor.study.graph import build_graph
from gapfloor.study.model import read_study
from replication_findings import Sides, judge
from replication_tables import build_tables, by_recommended, references

ROOT = Path(__file__).parents[1]
DATA, STUDY = ROOT / "data" / "miniature", ROOT / "studies" / "miniature.toml"
CENSUS = ROOT / "data" / "miniature-census"
PLAN = ROOT / "studies" / "miniature-plan.toml"
#: The pages and the parts that each of them holds.
PAGES = {
    "replication.md": ("state", "findings", "calls", "references", "census", "costs"),
    "replication-tables.md": ("tables",),
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="The folder of the pages to fill in.")
    given = parser.parse_args()
    parts = build_parts()
    if given.write is None:
        sys.stdout.write("\n\n".join(parts.values()) + "\n")
        return
    for name, held in PAGES.items():
        page = given.write / name
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
    results, words = analysed()
    return {
        "state": state(results, words),
        "findings": findings(paper, results),
        "calls": calls(paper, results),
        "references": references(results) if results else "The dataset holds no complete game yet.",
        "census": census(paper, results),
        "costs": costs(),
        "tables": build_tables(paper, results, DATA),
    }


def analysed() -> tuple[AnalysisResults | None, str]:
    """The results under the locked plan, or without it while cells are missing, and which of the two they are."""
    if not DATA.is_dir():
        return None, "The dataset holds no complete game yet."
    try:
        return analyse(
            DATA, plan=PLAN
        ), "The study is complete: the findings and the calls by the paper's tests are under the locked plan."
    except CheckFailedError:
        words = (
            "The study is not complete, so the locked plan does not allow an analysis yet. What follows is "
            "exploratory: the same tests on the games that are complete, with Holm's correction over these games only."
        )
        return analyse(DATA), words


def state(results: AnalysisResults | None, words: str) -> str:
    """What has been measured under which plan."""
    lock = load_plan(PLAN).lock
    assert lock is not None
    study = read_study(STUDY)
    games = results.source.games if results else ()
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


def findings(paper: dict[str, object], results: AnalysisResults | None) -> str:
    """One row per finding, and a count of the verdicts."""
    judged = judge(paper, results)
    counts = Counter(finding.verdict for finding in judged)
    head = "| finding of the paper | 8M, as printed | 100k, ours | at this budget |\n|---|---|---|---|\n"
    rows = [f"| {one.sentence} | {one.paper} | {one.ours} | {one.verdict} |" for one in judged]
    order = ("shown", "not yet", "contradicted", "no data yet")
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
    return f"{head}" + "\n".join(rows) + f"\n\nOf {len(judged)} findings: {summary}."


def calls(paper: dict[str, object], results: AnalysisResults | None) -> str:
    """Held-out returns and calls of both, game by game."""
    sides = Sides(paper, results)
    head = (
        "| game | rule | paper: return (floor), call | ours: return (floor) | call by the paper's plan | "
        "recommended call |\n|---|---|---|---|---|---|\n"
    )
    rows = []
    for game in read_study(STUDY).games:
        for rule in ("sampled", "greedy"):
            printed = sides.unmask[game]
            ret, floor = printed[rule]["ret"], printed["floor"]
            theirs = f"{ret['mean']:.2f} ± {ret['sem']:.2f} ({floor['mean']:.2f}), {printed[rule]['call']}"
            row = sides.comparison(game, rule)
            if row is None:
                rows.append(f"| {game} | {rule} | {theirs} | | | |")
                continue
            ours = f"{row.mean:.2f} ± {row.sem:.2f} ({row.floor:.2f})"
            recommended = by_recommended(results, row).decision.label
            rows.append(f"| {game} | {rule} | {theirs} | {ours} | {row.call} | {recommended} |")
    return head + "\n".join(rows)


def census(paper: dict[str, object], results: AnalysisResults | None) -> str:
    """Held-out returns by both designs, with the calls of the recommended method."""
    if results is None or not CENSUS.is_dir():
        return "The census has not been played yet."
    every_level = analyse(CENSUS)
    designs = [Sides(paper, design) for design in (results, every_level)]
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
        study = read_study(ROOT / "studies" / f"{name}.toml")
        size = estimate(study)
        longest = max(task.seconds(study) for task in build_graph(study) if task.kind == "train") / 3600
        hours, training = size.total_core_seconds / 3600, size.core_seconds["train"] / 3600
        cells = size.n_cells + size.n_addendum_cells + size.n_floor_cells
        rows.append(
            f"| `studies/{name}.toml` | {size.n_runs} | {cells:,} | {hours:,.0f} | {training:,.0f} | "
            f"{longest:,.1f} h | {size.seconds_on(2) / 86400:,.1f} | {size.seconds_on(64) / 3600:,.1f} |"
        )
    return head + "\n".join(rows)


if __name__ == "__main__":
    main()
