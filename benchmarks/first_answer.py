"""Lines and seconds to the first answer, for six kinds of user, with this version and with an earlier one.

    git worktree add ../before 85df67a
    python benchmarks/first_answer.py --before ../before/src

Each text below is what a user adds to what they have: a trained model, a saved file, a table, a repository. It runs in
a new process and an empty store. With the earlier version, what a user would try first is run too: its README's own
lines, the model in memory, the table as it is.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)[0]
EVALUATE = "evaluate sb3:ppo.zip --game gym:CartPole-v1 --rules sampled,greedy --draws 0 --episodes 64"
CSV_BEFORE = """import pandas as pd
table = pd.read_csv("results.csv")
table = table.rename(columns={"env": "game", "algo": "agent", "split": "level_set", "return": "episode_return"})
table["budget"] = "8M"
table["draw"] = 0
table["rule"] = table["agent"].map({"ppo": "sampled", "random": "uniform"})
table.to_csv("episodes.csv", index=False)
import os
os.system("gapfloor analyse episodes.csv")
"""


@dataclass(frozen=True)
class User:
    """One kind of user: what they write now, and what they had to write before."""

    name: str
    kind: str
    """script, notebook or command."""
    now: str
    before: str
    tried: str = ""
    """What a user of the earlier version would try first."""
    has: str = ""
    """Lines that they have anyway and that are not counted."""


_MODEL = 'from stable_baselines3 import PPO\nmodel = PPO.load("ppo.zip")\n'
_EVALUATE_MODEL = (
    'import gapfloor\nprint(gapfloor.evaluate(model, game="gym:CartPole-v1", rules="sampled,greedy", draws={}, '
    "episodes=64))\n"
)
_SAVE_AND_EVALUATE = """import gapfloor
if __name__ == "__main__":
    model.save("saved.zip")
    print(gapfloor.evaluate("sb3:saved.zip", game="gym:CartPole-v1", rules="sampled,greedy", draws=[0], episodes=64))
"""
README_BEFORE = """import gapfloor
import numpy as np
def my_logits(frames):
    return np.zeros((len(frames), 15))
if __name__ == "__main__":
    result = gapfloor.evaluate(my_logits, game="starpilot", rules="sampled,greedy", draws=[0], episodes=64)
    print(result)
"""
README_AS_PRINTED = """import gapfloor
import numpy as np
my_logits = lambda frames: np.zeros((len(frames), 15))
floor = gapfloor.measure_floor("starpilot")
result = gapfloor.evaluate(my_logits, game="starpilot", rules="sampled,greedy")
print(result)
"""
NOTEBOOK_BEFORE = """import gapfloor
import numpy as np
my_logits = lambda frames: np.zeros((len(frames), 15))
result = gapfloor.evaluate(my_logits, game="starpilot", rules="sampled,greedy", draws=[0], episodes=64)
result
"""
USERS = (
    User(
        "Stable-Baselines3 script", "script", _EVALUATE_MODEL.format("0"), _SAVE_AND_EVALUATE,
        _EVALUATE_MODEL.format("[0]"), _MODEL,
    ),
    User("README script", "script", README, README_BEFORE, README_AS_PRINTED),
    User("notebook", "notebook", README.replace("print(result)", "result"), NOTEBOOK_BEFORE),
    User("command line, SB3 file", "command", EVALUATE, EVALUATE),
    User(
        "CSV of results", "command", "analyse results.csv --rule sampled --floor random", CSV_BEFORE,
        "analyse results.csv",
    ),
    User("audit of a repository", "command", "audit scan repository", "audit scan repository"),
)  # fmt: skip


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


def command_of(user: User, text: str, folder: Path) -> list[str]:
    """The process that runs a text of this user."""
    if user.kind == "command" and "\n" not in text:
        return [sys.executable, "-m", "gapfloor.cli.main", *text.split()]
    if user.kind == "notebook":
        import nbformat

        cell = nbformat.v4.new_code_cell(text)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "notebook.ipynb")
        run = (
            "import nbclient, nbformat; nbclient.NotebookClient(nbformat.read('notebook.ipynb', 4)).execute()"
        )
        return [sys.executable, "-c", run]
    (folder / "script.py").write_text(user.has + text, encoding="utf-8")
    return [sys.executable, "script.py"]


def run(user: User, text: str, folder: Path, source: Path) -> str:
    """Lines, seconds and CPU seconds of a text, or what came of it."""
    program = folder / "bin" / "gapfloor"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gapfloor.cli.main "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {
        "PYTHONPATH": str(source.resolve()),
        "GAPFLOOR_STORE": tempfile.mkdtemp(dir=folder),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
    }
    lines = sum(bool(line.strip()) for line in text.splitlines())
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(
        command_of(user, text, folder),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - start, os.times()
    processor = sum(after[2:4]) - sum(before[2:4])
    if done.returncode:
        said = len(done.stderr.splitlines())
        return f"{lines} lines, refused: exit code {done.returncode}, {said} lines on standard error"
    return f"{lines} lines, {wall:.0f} s ({processor:.0f} s of CPU)"


def main() -> None:
    parser = argparse.ArgumentParser(description="Lines and seconds to the first answer.")
    parser.add_argument("--before", type=Path, help="The src folder of an earlier version.")
    parser.add_argument("--only", default="", help="Part of the name of a kind of user.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for user in USERS:
            if arguments.only not in user.name:
                continue
            print(f"{user.name}\n  now: {run(user, user.now, folder, ROOT / 'src')}", flush=True)
            if arguments.before:
                print(f"  before: {run(user, user.before, folder, arguments.before)}", flush=True)
                if user.tried:
                    print(
                        f"  before, tried first: {run(user, user.tried, folder, arguments.before)}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
