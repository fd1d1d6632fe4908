"""Options of `gapfloor audit scan` for continuous integration, and what a failing scanner leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import MODEL, evaluate, frozen, train

from command_line import run
from gapfloor.audit import scan as scanning
from gapfloor.audit.reading.parsing import LONGEST_LITERAL
from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast

IMPLICIT = frozen("action, _ = net.act(obs)")
EXPLICIT = frozen("action, _ = net.act(obs, deterministic=True)")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scanner with a fault of its own: a part of it is missing."""
    monkeypatch.setattr(scanning, "build_index", None)


@pytest.mark.usefixtures("broken")
def test_a_fault_of_ours_exits_with_3_and_leaves_json_without_a_verdict(tmp_path: Path, capsys):
    out = tmp_path / "scan.json"
    done = run(capsys, "audit", "scan", write_files(tmp_path / "repo", EXPLICIT), "--json", "--out", out)
    document = json.loads(out.read_text())
    assert done.code == 3
    assert (document["verdict"]["rule"], document["complete"]) == ("unresolved", False)
    assert "TypeError" in document["error"]


@pytest.mark.usefixtures("broken")
def test_a_fault_of_ours_leaves_sarif_that_says_so(tmp_path: Path, capsys):
    out = tmp_path / "scan.sarif"
    assert run(capsys, "audit", "scan", write_files(tmp_path / "repo", EXPLICIT), "--out", out).code == 3
    (sarif_run,) = json.loads(out.read_text())["runs"]
    assert sarif_run["invocations"][0]["executionSuccessful"] is False
    assert sarif_run["results"] == []


def test_the_old_flag_of_a_format_is_read_with_a_file_and_refused_without(tmp_path: Path, capsys):
    folder, out = write_files(tmp_path / "repo", EXPLICIT), tmp_path / "scan.sarif"
    done = run(capsys, "audit", "scan", folder, "--sarif", "--out", out)
    assert (done.code, "--sarif is now --out NAME.sarif" in done.err) == (0, True)
    assert json.loads(out.read_text())["runs"]
    done = run(capsys, "audit", "scan", folder, "--sarif")
    assert (done.code, "use --out NAME.sarif" in done.err) == (2, True)


def test_a_long_literal_does_not_hide_the_rule_and_is_not_taken_for_all_there_is(tmp_path: Path):
    table = ", ".join(str(number) for number in range(LONGEST_LITERAL * 3))
    files = EXPLICIT | {"table.py": f"TABLE = [{table}]\n"}
    assert scan(str(write_files(tmp_path / "outside", files))).verdict.rule == "argmax"
    actions = ", ".join(["net.draw(obs)[0]"] * (LONGEST_LITERAL + 5))
    chosen = frozen(f"action = [{actions}, net.act(obs, deterministic=True)[0]][-1]")
    assert scan(str(write_files(tmp_path / "inside", chosen))).verdict.rule == "unresolved"


TWO_SCRIPTS = {
    "net.py": MODEL,
    "evaluation.py": evaluate("action, _ = net.act(obs, deterministic=greedy)", parameters=", greedy"),
    "train.py": train(
        imports="from evaluation import evaluate", evaluation="print(evaluate(args, net, True))"
    ),
    "other.py": train(
        imports="from evaluation import evaluate", evaluation="print(evaluate(args, net, False))"
    ),
}


@pytest.mark.parametrize(("script", "rule"), [("train.py", "argmax"), ("other.py", "sampled")])
def test_an_entry_is_about_its_script_alone(tmp_path: Path, script: str, rule: str):
    folder = str(write_files(tmp_path, TWO_SCRIPTS))
    assert scan(folder).verdict.rule == "unresolved"
    result = scan(folder, entry=f"python {script}")
    assert (result.verdict.rule, {path.script for path in result.paths}) == (rule, {script})


def test_the_settings_of_an_entry_outweigh_defaults(tmp_path: Path):
    folder = str(
        write_files(tmp_path, frozen("action, _ = net.act(obs, deterministic=args.deterministic_eval)"))
    )
    assert scan(folder).verdict.rule == "sampled"
    assert scan(folder, entry="python train.py --deterministic_eval").verdict.rule == "argmax"


def test_an_entry_chooses_between_configuration_files(tmp_path: Path):
    files = frozen(
        "cfg = yaml.safe_load(open(args.config))\naction, _ = net.act(obs, deterministic=cfg['greedy'])"
    )
    files["evaluation.py"] = "import yaml\n" + files["evaluation.py"]
    folder = str(write_files(tmp_path, files | {"a.yaml": "greedy: true\n", "b.yaml": "greedy: false\n"}))
    assert scan(folder).verdict.rule == "unresolved"
    assert scan(folder, entry="python train.py --config a.yaml").verdict.rule == "argmax"
    assert scan(folder, entry="python train.py --config b.yaml").verdict.rule == "sampled"


@pytest.mark.parametrize("entry", ["ls -l", "python nowhere.py", "python 'train.py"])
def test_an_entry_that_starts_no_script_is_a_usage_error(tmp_path: Path, capsys, entry: str):
    done = run(capsys, "audit", "scan", write_files(tmp_path, EXPLICIT), "--entry", entry)
    assert done.code == 2
    assert "--entry" in done.err


@pytest.mark.parametrize("place", ["on", "above", "elsewhere"])
def test_a_comment_at_the_step_accepts_one_finding(tmp_path: Path, capsys, place: str):
    step = "        obs, _, done, infos = envs.step(action)"
    changed = {
        "on": f"{step}  # gapfloor: ignore",
        "above": f"        # gapfloor: ignore, the paper samples\n{step}",
        "elsewhere": f"{step}\n\n        # gapfloor: ignore",
    }[place]
    files = IMPLICIT | {"evaluation.py": IMPLICIT["evaluation.py"].replace(step, changed)}
    done = run(capsys, "audit", "scan", write_files(tmp_path, files), "--require-explicit")
    assert done.code == (1 if place == "elsewhere" else 0)


@pytest.mark.parametrize("files", [{}, {"tool.py": "print('no environment here')\n"}])
def test_require_explicit_fails_where_nothing_was_found(tmp_path: Path, capsys, files: dict[str, str]):
    tmp_path.mkdir(exist_ok=True)
    done = run(capsys, "audit", "scan", write_files(tmp_path, files), "--require-explicit")
    assert done.code == 1
    assert "No evaluation path was found" in done.err
