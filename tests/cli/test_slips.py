"""Slips of a new user: each is understood, or answered with one sentence that says what to write."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from command_line import GAPFLOOR, run
from gapfloor.cli.options import Count

pytestmark = pytest.mark.fast

POLICY = "small_policies:linear"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8M", 8_000_000),
        ("100k", 100_000),
        ("8_000_000", 8_000_000),
        ("1e6", 1_000_000),
        ("0.5M", 500_000),
        ("7", 7),
    ],
)
def test_a_large_number_is_read_as_people_write_it(text: str, number: int) -> None:
    assert Count().convert(text, None, None) == number


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train starpilot --steps 8X", "'8X' is not a whole number: write e.g. 8000000, 8M or 100k."),
        ("train starpilot --steps 1e400", "is not a whole number"),
        ("analyze nowhere.csv", "There is no store or file at nowhere.csv."),
        (f"evaluate {POLICY} --game maze --rules deterministic", "The rule is called 'greedy' here"),
        (f"evaluate {POLICY} --game maze --rules sampled greedy", "e.g. sampled,greedy"),
        (f"evaluate {POLICY} --game maze --rules temperature", "e.g. temperature:0.5"),
        ("evaluate nowhere/run --game maze --rules greedy", "There is no file 'nowhere/run'"),
        ("floor CartPole-v1", "did you mean gym:CartPole-v1"),
        ("compare nowhere elsewhere", "There is no store or file at nowhere."),
        ("plan lock .", ". is a folder: give a regular file."),
        ("audit ledger --registry --out .", ". is a folder: give the name of a file."),
        ("levels nothing --store other", "Unknown game 'nothing'"),
        ("levels maze --train 0:0 --store new", "The level set '0:0' is empty"),
        (
            "analyse t.csv --columns agent=algo --columns game=env",
            "--columns was given twice: give it once, with commas",
        ),
    ],
)
def test_a_slip_is_answered_before_anything_is_done(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(capsys, *arguments.split())
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_a_closed_standard_output_is_not_a_fault_of_ours(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$@" known-floor gym:CartPole-v1 {closed}', "sh", *GAPFLOOR], check=False
    )
    assert done.returncode == 0


def test_a_closed_standard_error_keeps_the_exit_code() -> None:
    done = subprocess.run(["sh", "-c", '"$@" analyse nowhere.csv 2>&-', "sh", *GAPFLOOR], check=False)
    assert done.returncode == 2
