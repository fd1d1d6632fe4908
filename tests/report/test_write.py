"""`gapfloor report`: what it writes, what it needs, and how it refuses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow.csv as pa_csv
import pytest
from tests import paper_shaped
from tests.report.fixture_store import write_replay
from tests.report.printed_results import printed_results, without

import gapfloor
from command_line import run, run_python
from gapfloor.analysis.apply import analyse
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.results import keep_results, results_digest
from gapfloor.errors import UsageError
from gapfloor.report.numbers import build_numbers, to_json
from gapfloor.report.replays import build_scenes, read_replays
from gapfloor.report.source import load_report_source, source_of_results
from gapfloor.report.verdict import build_verdicts, headline
from gapfloor.report.write import WrittenReport, write_report


@pytest.fixture(scope="module")
def episode_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two games of the study as anyone's CSV file, without cell records."""
    import pyarrow.compute as pc

    table = paper_shaped.load().episodes
    chosen = pc.and_(
        pc.is_in(table["game"], paper_shaped.pa.array(["miner", "heist"])),
        pc.is_in(table["budget"], paper_shaped.pa.array(["8M", ""])),
    )
    path = tmp_path_factory.mktemp("csv") / "episodes.csv"
    pa_csv.write_csv(table.filter(chosen), path)
    return path


def test_every_kind_of_file_is_written(paper_report: WrittenReport) -> None:
    names = {str(path.relative_to(paper_report.folder)) for path in paper_report.files}
    wanted = {
        "index.html", "numbers.tex", "numbers.json", "card.md", "card.json", "tables.md", "tables/unmask.tex",
        "tables/unmask.tabular.tex", "csv/unmask.csv", "figures/returns.pdf", "figures/gaps.svg",
        "figures/entropy.png", "figures/choices.pdf", "figures/entropy_training25m.pdf",
    }  # fmt: skip
    assert wanted <= names
    assert not list(paper_report.folder.rglob(".partial-*"))


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    full = printed_results()
    # One game: figures are slow, and each is drawn by the same code.
    results = without(
        full,
        **{
            name: tuple(
                row for row in getattr(full, name) if row.game == "heist" and row.budget in ("8M", "")
            )
            for name in ("floors", "floor_comparisons", "gaps", "screen", "agents", "encoders")
        },
    )
    first = write_report(source_of_results(results), tmp_path / "a")
    second = write_report(source_of_results(results), tmp_path / "b")
    assert {path.suffix for path in first.files} >= {
        ".pdf",
        ".svg",
        ".png",
        ".tex",
        ".html",
        ".json",
        ".md",
        ".csv",
    }
    for one, other in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_an_episode_file_is_reported_and_its_lacks_are_named(
    episode_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(
        capsys, "report", episode_file, "--out", tmp_path / "out", "--formats", "html,csv,card", "--json"
    )
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert {"unmask", "gap8m", "floor", "full8m", "gap2x2"} <= set(document["tables"])
    assert {"tiers", "sweep", "merged", "ckacontrol", "pooled"} <= set(document["left_out"])
    assert not {"audit", "commits", "hyper"} & {*document["tables"], *document["left_out"]}
    assert not (tmp_path / "out" / "numbers.tex").exists()
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "no locked plan: exploratory" in page


def test_report_needs_neither_engine_nor_torch(episode_file: Path, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'procgen', 'gym3', 'ray', 'onnxruntime'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from gapfloor.cli.main import main\n"
        f"main(['report', {str(episode_file)!r}, '--out', {str(tmp_path / 'out')!r}, '--format', 'tex,html'])\n"
    )
    done = run_python(script)
    assert done.code == 0, done.err
    assert "miner (FPN) 8M: above the floor" in done.out
    # Two of its three runs are close in both games.
    assert "miner (IMPALA) 8M: not tested" in done.out


@pytest.mark.fast
def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean html"):
        write_report(source_of_results(printed_results()), tmp_path / "out", formats=("htm",))
    assert not (tmp_path / "out").exists()


@pytest.mark.fast
def test_a_missing_source_is_a_sentence_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(capsys, "report", tmp_path / "nothing", "--out", tmp_path / "out")
    assert done.code == 2
    assert "nothing" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.fast
def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        gapfloor.report(printed_results(), tmp_path / "out", progress=False)


@pytest.mark.fast
def test_verdicts_say_what_the_calls_say() -> None:
    source = source_of_results(printed_results())
    verdicts = {
        (verdict.place.name, verdict.place.budget): verdict for verdict in build_verdicts(source.findings)
    }
    # The printed rows have no level seeds: whether the level sets are disjoint is not known.
    assert verdicts["miner", "8M"].reason
    assert "worse than random play" in verdicts["miner", "8M"].sentence
    assert verdicts["heist", "8M"].reason
    # Two calls that differ do not establish a gap; the printed rows have no test of it.
    assert verdicts["heist", "25M"].reason
    assert "transfers" in verdicts["heist", "25M"].does_not
    assert "was not tested" in verdicts["starpilot", "8M"].supports
    assert headline(source.findings).startswith("Of eight games at 8M, five score above the random floor")


@pytest.mark.fast
def test_without_a_floor_the_verdict_claims_nothing() -> None:
    results = without(printed_results(), floor_comparisons=(), floors=(), call_counts=())
    verdicts = build_verdicts(source_of_results(results).findings)
    assert {verdict.badge for verdict in verdicts} == {"no floor"}
    assert "nothing can be said" in headline(source_of_results(results).findings)


@pytest.mark.fast
def test_scenes_put_the_same_level_side_by_side_on_one_clock(tmp_path: Path) -> None:
    for rule, length in (("uniform", 90), ("greedy", 1000), ("sampled", 37)):
        write_replay(tmp_path, game="heist", rule=rule, level_seed=1007, length=length)
    write_replay(tmp_path, game="heist", rule="greedy", level_seed=1008, length=12)
    scenes = build_scenes(read_replays(tmp_path / "replays"), rules=("sampled", "greedy"))
    assert [[clip.replay.rule for clip in scene.clips] for scene in scenes] == [
        ["sampled", "greedy", "uniform"],
    ]  # fmt: skip
    first = scenes[0]
    assert first.stride == 7
    # One frame every 7 steps, and the last one.
    assert [clip.frames for clip in first.clips] == [7, 144, 14]
    # The last frame of the shortest clip, where its square is not that of random play any more.
    assert first.start == 6


@pytest.mark.fast
def test_a_broken_replay_is_passed_over(tmp_path: Path) -> None:
    write_replay(tmp_path, game="heist", rule="greedy", level_seed=1, length=5)
    frames = next((tmp_path / "replays").glob("*.npz"))
    frames.write_bytes(b"PK\x03\x04 broken")
    assert build_scenes(read_replays(tmp_path / "replays"), rules=("greedy",)) == ()


def test_hyperparameters_come_from_checkpoint_headers(paper_store: Path, paper_report: WrittenReport) -> None:
    table = paper_report.made.get("hyper")
    assert table is not None
    shown = dict([cell.plain for cell in row] for row in table.body)
    assert shown["Parallel environments"] == "16 (8M); 256 (25M)"
    assert shown["Value loss clipping"] == "enabled"


def test_levels_of_a_file_are_said_to_be_observed(episode_file: Path) -> None:
    source = load_report_source(episode_file)
    assert source.provenance.levels_are_observed
    assert source.provenance.levels["test"].startswith("100")


@pytest.mark.fast
def test_one_game_is_not_counted_but_told() -> None:
    full = printed_results()
    rows = tuple(row for row in full.floor_comparisons if (row.game, row.budget) == ("miner", "8M"))
    counts = tuple(dataclasses.replace(row, games=1) for row in full.call_counts if row.budget == "8M")
    source = source_of_results(without(full, floor_comparisons=rows, gaps=(), call_counts=counts))
    assert headline(source.findings).startswith("miner at 8M: with sampled actions the six runs score 5.93")


def test_rows_that_analyse_left_in_the_store_are_used_while_they_fit(one_game_page: Path) -> None:
    store = one_game_page.parents[1] / "store"
    inputs = read_inputs(store)
    results = analyse(inputs)
    marked = dataclasses.replace(results, plan=dataclasses.replace(results.plan, name="read from the store"))
    keep_results(marked, store, digest=results_digest(inputs))
    assert load_report_source(store).findings.plan.name == "read from the store"
    keep_results(marked, store, digest="of other data")
    source = load_report_source(store)
    assert source.findings.plan.name == results.plan.name
    # What is read back gives the numbers of the analysis itself.
    keep_results(results, store, digest=results_digest(inputs))
    again = load_report_source(store)
    assert to_json(build_numbers(again.findings)) == to_json(build_numbers(source.findings))
