"""Four policies that only act, each compared with the floor: `python examples/evaluate_acting.py`."""

from acting_policies import EpsilonGreedy, RandomShooting, TextAgent, solve_minigrid

import gapfloor

settings = {"rules": "own", "draws": 0, "episodes": 32, "train": "0:50", "test": "1000:1050"}
for policy, game in [
    (RandomShooting(), "gym:CartPole-v1"),
    (EpsilonGreedy(), "gym:CartPole-v1"),
    (solve_minigrid, "gym:MiniGrid-Empty-Random-6x6-v0"),
    (TextAgent(), "acting_policies:Corridor"),
]:
    print(gapfloor.evaluate(policy, game=game, **settings))  # noqa: T201
