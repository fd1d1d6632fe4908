"""Lines and seconds to the first answer, for six kinds of user.

    python benchmarks/first_answer.py [--repeats 3]

Each text below is what a user adds to what they have: a trained model, a saved file, a table, a repository. It runs in
a new process and an empty store.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)[0]
EVALUATE = "evaluate sb3:ppo.zip --game gym:CartPole-v1 --rules sampled,greedy --draws 0 --episodes 64"


@dataclass(frozen=True)
class User:
    """One kind of user and what they write."""

    name: str
    kind: str
    """script, notebook or command."""
    text: str
    has: str = ""
    """Lines that they have anyway and that are not counted."""


_MODEL = 'from stable_baselines3 import PPO\nmodel = PPO.load("ppo.zip")\n'
_EVALUATE_MODEL = (
    'import gapfloor\nprint(gapfloor.evaluate(model, game="gym:CartPole-v1", rules="sampled,greedy", draws=0, '
    "episodes=64))\n"
)
USERS = (
    User("Stable-Baselines3 script", "script", _EVALUATE_MODEL, _MODEL),
    User("README script", "script", README),
    User("notebook", "notebook", README.replace("print(result)", "result")),
    User("command line, SB3 file", "command", EVALUATE),
    User("CSV of results", "command", "analyse results.csv --rule sampled --floor random"),
    User("audit of a repository", "command", "audit scan repository"),
)


def prepare(folder: Path) -> None:
    """What the users have: a saved model, a table of results and a repository."""
    from stable_baselines3 import PPO

    PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=1).learn(64).save(folder / "ppo.zip")
    rng = random.Random(0)
    with (folder / "results.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["env", "algo", "seed", "split", "return"])
        for algo, mean in (("ppo", 6), ("random", 2)):
            for seed in range(3):
                for split in ("train", "test"):
                    for _ in range(20):
                        writer.writerow(["heist", algo, seed, split, round(rng.gauss(mean, 2), 3)])
    (folder / "repository").mkdir()
    (folder / "repository" / "evaluate.py").write_text(
        "import gym\nfrom stable_baselines3 import PPO\n"
        'env = gym.make("procgen:procgen-coinrun-v0", start_level=1000, num_levels=100)\n'
        'model = PPO.load("model.zip")\nobs = env.reset()\nfor _ in range(1000):\n'
        "    action, _ = model.predict(obs)\n    obs, reward, done, info = env.step(action)\n"
    )


def command_of(user: User, folder: Path) -> list[str]:
    """The process that runs the text of this user."""
    if user.kind == "command":
        return [sys.executable, "-m", "gapfloor.cli.main", *user.text.split()]
    if user.kind == "notebook":
        import nbformat

        cell = nbformat.v4.new_code_cell(user.text)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "notebook.ipynb")
        run = (
            "import nbclient, nbformat; nbclient.NotebookClient(nbformat.read('notebook.ipynb', 4)).execute()"
        )
        return [sys.executable, "-c", run]
    (folder / "script.py").write_text(user.has + user.text, encoding="utf-8")
    return [sys.executable, "script.py"]


def seconds_of(user: User, folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of the user's text."""
    environment = os.environ | {"GAPFLOOR_STORE": tempfile.mkdtemp(dir=folder)}
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(
        command_of(user, folder), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise RuntimeError(f"{user.name} failed with exit code {done.returncode}:\n{done.stderr}")
    return wall, sum(after[2:4]) - sum(before[2:4])


def main() -> None:
    parser = argparse.ArgumentParser(description="Lines and seconds to the first answer.")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each text (default: 3)")
    parser.add_argument("--only", default="", help="Part of the name of a kind of user.")
    arguments = parser.parse_args()
    print("| user | lines | s | CPU s |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for user in USERS:
            if arguments.only not in user.name:
                continue
            lines = sum(bool(line.strip()) for line in user.text.splitlines())
            runs = [seconds_of(user, folder) for _ in range(arguments.repeats)]
            wall, processor = (statistics.median(each) for each in zip(*runs, strict=True))
            print(f"| {user.name} | {lines} | {wall:.1f} | {processor:.1f} |", flush=True)


if __name__ == "__main__":
    main()
