"""Kill commands at random moments, run them again, and compare every byte with an undisturbed run.

    python tools/kill_campaign.py --out kills.json

One call kills floor, evaluate, train, report, study and a study on Ray a hundred times in all, half of the time with
their workers and half of the time alone; under Ray, half of the time one of the cluster's workers is killed first, and
the kill of the command follows. A command is killed up to `IN_A_ROW` times before it may finish. A kill counts
only if the command was still running. Every file that a command leaves is compared, except those in `log/`, which hold
times. Shared memory, semaphores and temporary folders of gapfloor are listed before, during and after. Exit code 1 if
anything differs or is left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

GAPFLOOR = Path(sys.executable).with_name("gapfloor")
IN_A_ROW = 4

POLICY = """
import numpy as np
def make():
    return lambda observations: np.stack([-observations[:, 2], observations[:, 2]], axis=1) * 9
"""

STUDY = """
name = "killed"
train = "0:10"
test = "100:110"
formats = ["md"]
[[runs]]
games = ["gym:CartPole-v1"]
policies = "leaning:make"
agent = "leaning"
seeds = [1]
[evaluation]
draws = [0, 1]
episodes = 8
slots = 4
probe = 0
"""

_FEW = "--draws 0,1,2 --episodes 8 --slots 4 --store {folder} --workers 2 -q"
_RUN = "study run study.toml --store {folder}"
#: Each command with its share of the kills, in percent.
COMMANDS = {
    "floor": (30, f"floor gym:CartPole-v1 {_FEW}"),
    "floor (ProcGen)": (8, f"floor bossfight {_FEW}"),
    "evaluate": (
        30,
        f"evaluate leaning:make --game gym:CartPole-v1 --agent a --budget 1 --seeds 1 --rules sampled,greedy {_FEW}",
    ),
    "study": (12, f"{_RUN} --workers 2"),
    "report": (12, "report store --out {folder} --formats md,csv,card,methods,html -q"),
    "train": (4, "train bossfight --steps 512 --envs 1 --threads 1 -q --store {folder}"),
    "study --ray": (4, f"{_RUN} --ray {{address}}"),
}


@dataclass
class Outcome:
    """The kills of one command."""

    command: str
    seconds: float
    """How long the undisturbed run took."""
    kills: int = 0
    with_workers: int = 0
    ray_workers: int = 0
    """Workers of the Ray cluster that were killed besides."""
    compared: int = 0
    """Times that the command finished after kills and was compared."""
    different: list[str] = field(default_factory=list)
    """Files with another byte than in an undisturbed run."""


@dataclass(frozen=True)
class Place:
    """Where commands run: the folder with the policy and the study, and a Ray cluster if there is one."""

    home: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    address: str = ""

    def ray_workers(self) -> list[int]:
        """Processes of this cluster that run a task now; Ray puts the name of the task into theirs."""
        mine = f"RAY_AUTH_TOKEN={self.environment.get('RAY_AUTH_TOKEN', secrets.token_hex(32))}".encode()
        found = []
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                name = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
                if re.match(rb"ray::(?!IDLE)", name) and mine in (process / "environ").read_bytes():
                    found.append(int(process.name))
        return found


@contextlib.contextmanager
def ray_cluster(home: Path) -> Iterator[Place]:
    """A Ray cluster of one node on this machine, stopped at the end."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    nodes = importlib.import_module("study.ray_cluster")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    # A busy machine answers late: the cluster must not take its own node for lost.
    patience = {"RAY_health_check_period_ms": "10000", "RAY_health_check_timeout_ms": "60000"}
    with tempfile.TemporaryDirectory(
        prefix="gfr", ignore_cleanup_errors=True
    ) as folder:  # sockets need a short path
        node = nodes.OneNode(Path(folder), authentication=token | patience, cpus=2)
        try:
            yield Place(home, node.environment, node.address)
        finally:
            node.close()


def start(line: str, folder: Path, place: Place) -> subprocess.Popen[bytes]:
    """Start a command as the head of a process group of its own."""
    words = [each.format(folder=folder, address=place.address) for each in line.split()]
    return subprocess.Popen(
        [str(GAPFLOOR), *words],
        cwd=place.home,
        env=place.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(line: str, folder: Path, place: Place) -> float:
    """Run a command to its end; the seconds that it took."""
    started = time.monotonic()
    process = start(line, folder, place)
    _, errors = process.communicate()
    refuse_failure(line, process, errors)
    return time.monotonic() - started


def refuse_failure(line: str, process: subprocess.Popen[bytes], errors: bytes) -> None:
    """End the campaign if a command that nobody killed failed."""
    if process.returncode:
        raise SystemExit(f"{line} ended with {process.returncode}: {errors.decode()[-800:]}")


def kill(line: str, folder: Path, place: Place, *, after: float, whole_group: bool, outcome: Outcome) -> bool:
    """Start a command and kill it; whether it was still running."""
    process = start(line, folder, place)
    try:
        if place.address and whole_group:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=after)
            for worker in place.ray_workers()[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    outcome.ray_workers += 1
            after = 2.0  # the command notices the lost worker and begins its task again
        _, errors = process.communicate(timeout=after)
        refuse_failure(line, process, errors)
        return False
    except subprocess.TimeoutExpired:
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        time.sleep(1.0)  # workers see within half a second that their parent is gone
        return True


def contents(folder: Path) -> dict[str, str]:
    """A hash of every file but those of `log/` and locks."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "log" not in path.relative_to(folder).parts and path.name != "lock"
    }


def left_behind() -> dict[str, int]:
    """What lies in shared memory and among temporary files of gapfloor and loky, and whose process is gone."""
    found: Counter[str] = Counter({"semaphores": 0, "shared memory": 0, "temporary folders": 0})
    for place in {Path("/dev/shm"), Path(tempfile.gettempdir())}:
        for path in place.iterdir() if place.is_dir() else ():
            owner = re.match(r"(?:sem\.)?(?:gapfloor-\w+-[0-9a-f]+|loky)-(\d+)-", path.name)
            if owner and not Path(f"/proc/{owner[1]}").exists():
                is_shared = place == Path("/dev/shm")
                kind = "semaphores" if path.name.startswith("sem.") else "shared memory"
                found[kind if is_shared else "temporary folders"] += 1
    return dict(found)


def campaign(name: str, line: str, kills: int, place: Place, rng: random.Random) -> Outcome:
    """Kill one command so many times; new folders, each killed several times."""
    undisturbed, folder = place.home / "undisturbed", place.home / "killed"
    outcome = Outcome(name, round(finish(line, undisturbed, place), 1))
    expected = contents(undisturbed)
    while outcome.kills < kills:
        for _ in range(min(IN_A_ROW, kills - outcome.kills)):
            whole_group = rng.random() < 0.5
            after = rng.uniform(0.25, 1.0) * outcome.seconds
            if not kill(line, folder, place, after=after, whole_group=whole_group, outcome=outcome):
                break
            outcome.kills += 1
            outcome.with_workers += whole_group
        finish(line, folder, place)
        found = contents(folder)
        outcome.compared += 1
        outcome.different += sorted(
            each for each in found.keys() | expected.keys() if found.get(each) != expected.get(each)
        )
        shutil.rmtree(folder)
    shutil.rmtree(undisturbed)
    return outcome


def main() -> None:
    """Run the campaign and write its counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="kills of all commands together")
    parser.add_argument("--only", help="names of commands, with commas: no others are killed")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    parser.add_argument("--out", type=Path, help="file for the counts (JSON), written after each command")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    names: Sequence[str] = asked.only.split(",") if asked.only else [*COMMANDS]
    left = {"before": left_behind()}
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="kill-campaign-") as made:
        home = Path(made)
        (home / "leaning.py").write_text(POLICY)
        (home / "study.toml").write_text(STUDY)
        finish(COMMANDS["evaluate"][1], home / "store", Place(home))  # what the report is about
        for name in names:
            share, line = COMMANDS[name]
            kills = round(asked.kills * share / 100)
            with ray_cluster(home) if "{address}" in line else contextlib.nullcontext(Place(home)) as place:
                outcomes.append(campaign(name, line, kills, place, rng))
            left[f"after {name}"] = left_behind()
            document = {"commands": [asdict(each) for each in outcomes], "left_behind": left}
            sys.stderr.write(f"{outcomes[-1]}\n")
            if asked.out:
                asked.out.write_text(json.dumps(document, indent=1) + "\n")
        finish(
            COMMANDS["floor"][1], home / "last", Place(home)
        )  # the next start removes what the last kill left
        time.sleep(2.0)
    left["after the next start"] = left_behind()
    text = json.dumps(document, indent=1)
    sys.stdout.write(text + "\n")
    if asked.out:
        asked.out.write_text(text + "\n")
    is_more = any(left["after the next start"][kind] > n for kind, n in left["before"].items())
    sys.exit(1 if is_more or any(each.different for each in outcomes) else 0)


if __name__ == "__main__":
    main()
