"""Counted episodes per second: `evaluate` against Stable-Baselines3's `evaluate_policy`.

    .venv/bin/python -m pip install -c constraints.txt stable-baselines3
    .venv/bin/python benchmarks/evaluation_speed.py [CHECKPOINT] [--game starpilot] [--rule sampled] [--episodes 128]

The same engine, game, network (IMPALA, 622,144 parameters in the encoder), rule and number of counted episodes, one
process and one thread on each side, timed by CPU time; with --best each side uses the machine in its best way (ours:
one process per core; theirs: one process with all threads), timed by wall time. Rounds alternate. Also printed: the
share of inferences that each side spends on episodes that do not count.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.levels import LevelSet
from gapfloor.machine import available_cores, one_torch_thread
from gapfloor.play.actor import PolicyActor
from gapfloor.play.cell import CellSpec, Design, Inference, Run
from gapfloor.play.group import CellGroup
from gapfloor.play.player import CellPlay, Player
from gapfloor.play.protocol import INFERENCE_BATCH
from gapfloor.play.workers import CellWorkers
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store
from gapfloor.rules import parse_rule, softmax

LEVELS = LevelSet(1000, 1100)
CLOCK = time.process_time


class Counting:
    """The network, and how many frames it has seen."""

    backend, device = "torch", "cpu"

    def __init__(self, checkpoint: str | None) -> None:
        self.frames = 0
        if checkpoint:
            policy: Any = PolicySource(checkpoint).load()
            self._agent = policy._agent
        else:
            from gapfloor.training.agent import make_agent

            self._agent = make_agent("impala", observation_shape=(64, 64, 3), n_actions=15, seed=0)

    def logits(self, observations: np.ndarray) -> np.ndarray:
        self.frames += len(observations)
        with torch.inference_mode():
            return self._agent(torch.from_numpy(np.ascontiguousarray(observations)))[0].numpy()


class ProcgenVecEnv(VecEnv):
    """The engine as SB3 wants it."""

    def __init__(self, game: str, slots: int) -> None:
        self.engine = ProcgenEngine(game, slots=slots, levels=LEVELS)
        space = gymnasium.spaces.Box(0, 255, self.engine.observation_shape, np.uint8)
        super().__init__(slots, space, gymnasium.spaces.Discrete(self.engine.n_actions))

    def reset(self) -> np.ndarray:
        return self.engine.observe()[0].copy()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        observations, rewards, firsts = self.engine.step(self._actions)
        return observations.copy(), rewards.copy(), firsts.copy(), [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        self.engine.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class AsModel:
    """The network as SB3's `evaluate_policy` calls it."""

    def __init__(self, network: Counting) -> None:
        self._network = network
        self._rng = np.random.default_rng(0)

    def predict(self, observations: np.ndarray, state: Any, episode_start: Any, deterministic: bool):
        logits = self._network.logits(observations)
        if deterministic:
            return logits.argmax(axis=1), state
        cumulative = softmax(logits).cumsum(axis=1)
        return (cumulative < self._rng.random(len(logits))[:, None]).sum(axis=1).clip(
            max=logits.shape[1] - 1
        ), state


def theirs(game: str, rule: str, episodes: int, checkpoint: str | None) -> tuple[float, float]:
    """Episodes per second of SB3, and its share of inferences spent on uncounted episodes."""
    network = Counting(checkpoint)
    env = ProcgenVecEnv(game, 16)
    start = CLOCK()
    _, lengths = evaluate_policy(
        AsModel(network),
        env,
        episodes,
        deterministic=rule == "greedy",
        warn=False,
        return_episode_rewards=True,
    )
    seconds = CLOCK() - start
    return episodes / seconds, 1 - sum(lengths) / network.frames


def ours(game: str, rule: str, episodes: int, draws: int, checkpoint: str | None) -> tuple[float, float]:
    """The same of the player, which fills one cell's tail with the next: `draws` cells share the episodes."""
    network = Counting(checkpoint)
    spec, chosen = make_spec(game), parse_rule(rule)
    cells = [
        CellSpec(spec, Run(agent="a"), "h", rule, "test", LEVELS, draw, Design(episodes=episodes // draws))
        for draw in range(draws)
    ]
    player = Player(
        make_engine=lambda n: ProcgenEngine(game, slots=n, levels=LEVELS),
        actor=PolicyActor(network, name="impala", n_actions=15, noop=4),
        n_slots=INFERENCE_BATCH,
    )
    start = CLOCK()
    plays = list(player.play(CellPlay(cell, chosen, chosen.is_deterministic) for cell in cells))
    seconds = CLOCK() - start
    simulated = {id(o): o.length for play in plays for o in play.finished()}
    return episodes / seconds, 1 - sum(simulated.values()) / network.frames


def ours_best(game: str, rule: str, episodes: int, draws: int, checkpoint: str) -> float:
    """Episodes per second of the worker processes, start-up included."""
    source = PolicySource(checkpoint)
    cells = tuple(
        CellSpec(
            make_spec(game), Run(agent="a"), "h", rule, "test", LEVELS, draw, Design(episodes=episodes // draws),
            Inference(INFERENCE_BATCH),
        )
        for draw in range(draws)
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.prepare()
        start = time.perf_counter()
        CellWorkers().play([CellGroup(make_spec(game), cells, source)], store=store)
        return episodes / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", nargs="?", default=None, help="default: a network with new weights")
    parser.add_argument("--game", default="starpilot")
    parser.add_argument("--rule", default="sampled", choices=["sampled", "greedy"])
    parser.add_argument("--episodes", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--best", action="store_true", help="the best layout of each side; needs a checkpoint"
    )
    arguments = parser.parse_args()
    game, rule, episodes = arguments.game, arguments.rule, arguments.episodes
    if arguments.best:
        global CLOCK
        CLOCK = time.perf_counter
    ratios = []
    for number in range(arguments.rounds):
        if arguments.best:
            torch.set_num_threads(available_cores())
            sb3, wasted = theirs(game, rule, episodes, arguments.checkpoint)
            mine, mine_wasted = ours_best(game, rule, episodes, 6, arguments.checkpoint), float("nan")
        else:
            with one_torch_thread():
                sb3, wasted = theirs(game, rule, episodes, arguments.checkpoint)
                mine, mine_wasted = ours(game, rule, episodes, 3, arguments.checkpoint)
        ratios.append(mine / sb3)
        print(
            f"round {number}: ours {mine:.1f} episodes/s ({mine_wasted:.0%} of inferences uncounted), SB3 {sb3:.1f} "
            f"({wasted:.0%}), ratio {mine / sb3:.2f}",
            flush=True,
        )
    print(f"{game} {rule}: ours / SB3: median {statistics.median(ratios):.2f}, all {np.round(ratios, 2)}")


if __name__ == "__main__":
    main()
