"""A robot policy and a text agent against random play on twenty levels, with the exact paired test for few episodes.

    pip install "gapfloor[gymnasium]" gymnasium-robotics "mujoco<3.12"
    python examples/few_episodes.py FetchReach
    python examples/few_episodes.py Corridor

Both play each level once. Where a policy is no better than random play, the levels that only one of the two solves are
as often the one's as the other's, so their number is binomial: this is McNemar's test, exact for any number of levels.
"""

import sys
import tempfile

import numpy as np
from acting_policies import TextAgent
from scipy.stats import binomtest

import gapfloor


def move_to_goal(observation: dict[str, np.ndarray]) -> np.ndarray:
    """Moves the hand of the Fetch robot straight to the goal; the last number is the gripper."""
    return np.append(5 * (observation["desired_goal"] - observation["achieved_goal"]), 0)


move_to_goal.is_deterministic = True  # type: ignore[attr-defined]

TASKS = {
    "FetchReach": (move_to_goal, {"game": "gym:gymnasium_robotics:FetchReach-v4", "score": "success"}),
    "Corridor": (TextAgent(), {"game": "acting_policies:Corridor"}),
}


def paired_test(store: str) -> str:
    """Levels solved by the policy and by random play, and the exact two-sided p of their difference."""
    solved: dict[bool, dict[int, bool]] = {True: {}, False: {}}
    for row in gapfloor.Store(store).episodes().to_pylist():
        solved[row["rule"] == "own"][row["level_seed"]] = row["episode_return"] > 0
    policy, floor = ({level for level, done in each.items() if done} for each in solved.values())
    only_one = len(policy ^ floor)
    p = binomtest(len(policy - floor), only_one).pvalue if only_one else 1.0
    counts = f"solved {len(policy)} of {len(solved[True])} levels, random play {len(floor)}"
    return f"{counts}; only one of them: {only_one}; p = {p:.2g}"


for name in sys.argv[1:] or TASKS:
    policy, settings = TASKS[name]
    with tempfile.TemporaryDirectory() as store:
        gapfloor.evaluate(
            policy, rules="own", design="census", train="none", test="1000:1020", store=store, **settings
        )
        print(f"{name}: {paired_test(store)}")  # noqa: T201
