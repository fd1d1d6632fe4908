"""Kill commands at random moments, run them again, and compare every byte with an undisturbed run.

    python tools/kill_campaign.py --kills 100 --ray 6 --out kills.json

Five commands are killed (floor, evaluate, train, report, study; the slow ones less often), half of the time with their
workers and half of the time alone. `--ray` adds kills of a study on Ray. Every file that a command leaves is compared,
except those in `log/`, which hold times. What is left in shared memory and in the folder for temporary files is
listed. Exit code 1 if anything differs or is left behind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GAPFLOOR = Path(sys.executable).with_name("gapfloor")
AGENT = ROOT / "agents" / "miner-easy-impala-100k-s1"

STUDY = f"""
name = "killed"
description = "One run under two rules."
[[runs]]
games = ["miner"]
encoders = ["impala"]
seeds = [1]
steps = 100_000
budget = "100k"
environments = 16
checkpoints = "{ROOT / "agents"}"
[evaluation]
rules = ["sampled", "greedy"]
draws = [0]
episodes = 16
"""


@dataclass(frozen=True)
class Command:
    """A command that writes into one folder, written {folder} in its arguments."""

    name: str
    arguments: Sequence[str]
    percent: int = 100
    """Its share of the kills."""

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        """Start it as the head of a process group of its own."""
        arguments = [each.format(folder=folder) for each in self.arguments]
        return subprocess.Popen(
            [str(GAPFLOOR), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, folder: Path) -> float:
        """Run it to its end; the seconds that it took."""
        started = time.monotonic()
        process = self.start(folder)
        _, errors = process.communicate()
        if process.returncode:
            raise SystemExit(f"{self.name} ended with {process.returncode}: {errors.decode()[-800:]}")
        return time.monotonic() - started


@dataclass
class Outcome:
    """The kills of one command."""

    command: str
    kills: int = 0
    finished_before: int = 0
    """Kills that came after the command's end."""
    different: int = 0
    """Resumed results with another byte than an undisturbed run."""


def commands(home: Path, *, on_ray: bool) -> list[Command]:
    """The five commands, or the study on Ray."""
    (home / "study.toml").write_text(STUDY)
    few = ["--draws", "0", "--episodes", "16", "--store", "{folder}", "--workers", "2", "-q"]
    study = ["study", "run", str(home / "study.toml"), "--store", "{folder}"]
    if on_ray:
        return [Command("study --ray", [*study, "--ray"])]
    train = ["--encoder", "impoola", "--steps", "8192", "--threads", "1", "--no-tensorboard", "-q"]
    return [
        Command("floor", ["floor", "starpilot", *few], 30),
        Command(
            "evaluate", ["evaluate", str(AGENT), "--game", "miner", "--rules", "sampled,greedy", *few], 30
        ),
        Command("train", ["train", "starpilot", *train, "--store", "{folder}"], 6),
        Command("report", ["report", str(home / "store"), "--out", "{folder}", "-q"], 22),
        Command("study", study, 12),
    ]


def contents(folder: Path) -> dict[str, str]:
    """A hash of every file but those of `log/` and locks."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "log" not in path.relative_to(folder).parts and path.name != "lock"
    }


def left_behind() -> set[str]:
    """What lies in shared memory and among temporary files of gapfloor and loky, and whose process is gone."""
    found = set()
    for place in {Path("/dev/shm"), Path(tempfile.gettempdir())}:
        for path in place.iterdir() if place.is_dir() else ():
            owner = re.match(r"(?:sem\.)?(?:gapfloor-\w+-[0-9a-f]+|loky)-(\d+)-", path.name)
            if owner and not Path(f"/proc/{owner[1]}").exists():
                found.add(str(path))
    return found


def kill_once(command: Command, folder: Path, *, after: float, whole_group: bool) -> bool:
    """Start a command and kill it; whether it was still running."""
    process = command.start(folder)
    try:
        process.wait(timeout=after)
        return False
    except subprocess.TimeoutExpired:
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        time.sleep(1.0)  # workers see within half a second that their parent is gone
        return True


def campaign(command: Command, kills: int, home: Path, rng: random.Random) -> Outcome:
    """Kill one command so many times, each time in a new folder."""
    undisturbed = home / "undisturbed"
    seconds = command.finish(undisturbed)
    expected = contents(undisturbed)
    outcome = Outcome(command.name)
    for number in range(kills):
        folder = home / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        was_running = kill_once(command, folder, after=rng.uniform(0.3, seconds), whole_group=number % 2 == 0)
        command.finish(folder)
        outcome.kills += 1
        outcome.finished_before += not was_running
        found = contents(folder)
        if found != expected:
            outcome.different += 1
            names = sorted(
                name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
            )
            sys.stderr.write(f"{command.name}, kill {number + 1}: {', '.join(names[:5])}\n")
    shutil.rmtree(undisturbed)
    return outcome


def main() -> None:
    """Run the campaign and write its counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="kills of the five local commands together")
    parser.add_argument("--only", help="names of the local commands to kill, with commas")
    parser.add_argument("--ray", type=int, default=0, help="further kills of a study on Ray")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    parser.add_argument("--out", type=Path, help="file for the counts (JSON)")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    before = left_behind()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="kill-campaign-") as folder:
        home = Path(folder)
        local = commands(home, on_ray=False)
        local[1].finish(home / "store")  # what the report is about
        for command in local:
            is_asked = not asked.only or command.name in asked.only.split(",")
            share = round(asked.kills * command.percent / 100) if is_asked else 0
            outcomes += [campaign(command, share, home, rng)] if share else []
            sys.stderr.write(f"{outcomes[-1]}\n" if share else "")
        if asked.ray:
            outcomes += [campaign(each, asked.ray, home, rng) for each in commands(home, on_ray=True)]
        local[0].finish(home / "last")  # the next start removes what the last kill left
        time.sleep(2.0)
    left = sorted(left_behind() - before)
    document = {"commands": [asdict(each) for each in outcomes], "left_behind": left}
    text = json.dumps(document, indent=1)
    sys.stdout.write(text + "\n")
    if asked.out:
        asked.out.write_text(text + "\n")
    sys.exit(1 if left or any(each.different for each in outcomes) else 0)


if __name__ == "__main__":
    main()
