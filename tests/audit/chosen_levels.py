"""Small repositories whose levels are chosen when an episode begins, or whose training runs in worker processes."""

from __future__ import annotations

from difficulties import Difficulty, acting
from smallrepos import MODEL

_WORLD = """
import gym


class World(gym.Env):
    def __init__(self, size=9):
        self.size = size

    def reset(self, env_id=0, seed=None):
        self.index = env_id
        return self.size

    def reset_task(self, index):
        self.index = index

    def step(self, action):
        return self.size, 1.0, False, {}
"""

_IMPORTS = """
import argparse
import numpy as np
import random
import torch
from net import Net
from world import World

HELD = 5
"""
_EVALUATE = """

def evaluate(env, net, chosen):
    total = 0.0
    for index in chosen:
        obs = env.reset({reset}=index)
        for _ in range(100):
            action, _ = net.act(obs, deterministic=True)
            obs, reward, done, info = env.step(action)
            total += reward
    return total
"""
_MAIN = """

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--tasks', type=int, default=20)
    args = parser.parse_args()
    everything = list(range(args.tasks))
    env = World()
    net = Net(64)
    optimizer = torch.optim.Adam(net.parameters())
    for update in range(1000):
        {train}
        for step in range(256):
            action, logprob, entropy = net.draw(obs)
            obs, reward, done, info = env.step(action)
        loss = (logprob * reward - entropy).mean()
        loss.backward()
        optimizer.step()
        {evaluation}


if __name__ == '__main__':
    main()
"""


def chosen(name: str, heldout: bool | None, *, train: str, test: str, reset: str = "env_id") -> Difficulty:
    """One environment class, and numbers that choose its level at each reset."""
    evaluation = f"print(evaluate(World(), net, {test}))"
    script = _IMPORTS + _EVALUATE.format(reset=reset) + _MAIN.format(train=train, evaluation=evaluation)
    files = {"net.py": MODEL, "world.py": _WORLD, "train.py": script}
    return Difficulty(name, files, (heldout, "argmax", "explicit-call-site", False))


CHOSEN = [
    chosen(
        "tasks of training and test share nothing",
        True,
        train="obs = env.reset(env_id=np.random.randint(15))",
        test="range(15, args.tasks)",
    ),
    chosen(
        "tasks of the test are those of training",
        False,
        train="obs = env.reset(env_id=np.random.randint(args.tasks))",
        test="range(args.tasks)",
    ),
    chosen(
        "tasks of the test lie among those of training",
        False,
        train="obs = env.reset(env_id=np.random.randint(args.tasks))",
        test="[i for i in range(3, 7)]",
    ),
    chosen(
        "tasks that overlap in part",
        None,
        train="obs = env.reset(env_id=np.random.randint(15))",
        test="range(10, args.tasks)",
    ),
    chosen(
        "a random number that includes its upper bound",
        None,
        train="obs = env.reset(env_id=random.randint(0, 15))",
        test="range(15, args.tasks)",
    ),
    chosen(
        "two parts of one list that meet",
        True,
        train="obs = env.reset(env_id=np.random.choice(everything[:HELD]))",
        test="everything[HELD:]",
    ),
    chosen(
        "the beginning and the end of one list, which may overlap",
        None,
        train="obs = env.reset(env_id=np.random.choice(everything[:12]))",
        test="everything[-12:]",
    ),
    chosen(
        "tasks that cannot be read",
        None,
        train="obs = env.reset(env_id=np.random.randint(15))",
        test="open('tasks.txt').read().split()",
    ),
    chosen(
        "training that leaves the task alone",
        None,
        train="obs = env.reset()",
        test="range(15, args.tasks)",
    ),
    chosen(
        "training that chooses a task by another method",
        True,
        train="env.reset_task(np.random.randint(15)); obs = env.reset()",
        test="range(15, args.tasks)",
    ),
    chosen(
        "seeds of training and test share nothing",
        True,
        train="obs = env.reset(seed=np.random.randint(0, 200))",
        test="range(1000, 1100)",
        reset="seed",
    ),
    chosen(
        "a single seed of training is not a level",
        False,
        train="obs = env.reset(seed=7)",
        test="range(1000, 1100)",
        reset="seed",
    ),
    chosen(
        "seeds of the test lie among those of training",
        False,
        train="obs = env.reset(seed=np.random.randint(0, 200))",
        test="range(100, 110)",
        reset="seed",
    ),
]

_WORKERS = """
import multiprocessing
import pickle
import torch
from net import Net
from world import World


def make_world(config, render=False):
    return World(size=config['size'])


def serve(remote, config):
    env = make_world(config)
    while True:
        command, data = remote.recv()
        if command == 'step':
            remote.send(env.step(data))
        else:
            remote.send(env.reset())


class Trainer:
    def __init__(self, config):
        self.net = Net(64)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.child, parent = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(parent, config['world']))
        self.process.start()

    def learn(self, config):
        for update in range(1000):
            for step in range(256):
                action, logprob, entropy = self.net.draw(self.child.recv()[0])
                self.child.send(('step', action))
            loss = (logprob - entropy).mean()
            loss.backward()
            self.optimizer.step()
        pickle.dump((self.net.state_dict(), config), open('model.nn', 'wb'))
"""
_TRAIN_WORKERS = """
import yaml
from workers import Trainer


def main():
    config = yaml.safe_load(open('config.yaml'))
    trainer = Trainer(config)
    trainer.learn(config)


if __name__ == '__main__':
    main()
"""
_ENJOY_WORKERS = """
import pickle
from net import Net
from workers import make_world


def main():
    weights, config = pickle.load(open('model.nn', 'rb'))
    net = Net(64)
    net.load_state_dict(weights)
    env = make_world({settings}, render=True)
    obs = env.reset()
    for _ in range(100):
        action = net.dist(obs).sample()
        obs, reward, done, info = env.step(action)


if __name__ == '__main__':
    main()
"""


def served(name: str, heldout: bool | None, settings: str) -> Difficulty:
    """Training in a worker process, and a script that plays what was trained."""
    files = {
        "net.py": MODEL,
        "world.py": _WORLD,
        "workers.py": _WORKERS,
        "config.yaml": "world:\n  size: 9\n",
        "train.py": _TRAIN_WORKERS,
        "enjoy.py": _ENJOY_WORKERS.format(settings=settings),
    }
    return Difficulty(name, files, (heldout, "sampled", "explicit-call-site", False))


SERVED = [
    served("a worker's environment, made again from the stored settings", False, "config['world']"),
    served("a worker's environment, made again from other stored settings", None, "config['test_world']"),
    served("a worker's environment, made again from new settings", None, "{'size': 13}"),
]

_RECORDING = {
    "net.py": MODEL,
    "world.py": _WORLD,
    "train.py": _IMPORTS + _MAIN.format(train="obs = env.reset()", evaluation=""),
}
_REPLAY = """
import pickle
from world import World

env = World()
env.reset()
episode = pickle.load(open('episode.pkl', 'rb'))
for number, action in enumerate(episode['actions']):
    env.step({action})
"""
RECORDED = [
    Difficulty(
        "actions that are replayed from a recording",
        _RECORDING | {"replay.py": _REPLAY.format(action="action")},
        (False, "sampled", "n/a", None),
    ),
    Difficulty(
        "a policy that was stored whole",
        _RECORDING | {"replay.py": _REPLAY.format(action="episode['policy'](number)")},
        (False, None, None, False),
    ),
    Difficulty(
        "actions looked up in a stored table",
        _RECORDING | {"replay.py": _REPLAY.format(action="episode['table'][env.index]")},
        (False, None, None, False),
    ),
]

_SPREAD = """
    def spread(self, obs, temperature=1.0):
        return torch.distributions.Normal(self.body(obs), 0.5 * temperature)

    def warm(self, obs, temperature=1.0):
        return self.spread(obs, temperature).sample()

    def deaf(self, obs, temperature=1.0):
        return torch.distributions.Normal(self.body(obs), 0.5).sample()

    def told(self, obs, deterministic):
        pi = self.dist(obs)
        if deterministic:
            return pi.probs.argmax(-1), None
        else:
            return pi.sample(), pi.log_prob(1)

    def unrolled(self, obs, steps=1, sample=False):
        chosen = obs
        for _ in range(steps):
            chosen = self.dist(obs).sample() if sample else self.body(obs).argmax(-1)
        return chosen

    def centre(self, obs, draw=True):
        dist = build(self)(obs)
        return dist.sample() if draw else dist.mean

    def middle(self, obs):
        scores = build(self)(obs)
        return scores.mean

    def chosen(self, obs, other):
        if isinstance(other, str):
            return self.body(obs).argmax(-1)
        return self.dist(obs).sample()
"""


def spread(name: str, action: str, rule: str | None, provenance: str | None) -> Difficulty:
    """A frozen evaluation that acts by one of the methods above."""
    imports = "import torch\n" if "torch." in action else ""
    return acting(name, action, rule, provenance, model=_SPREAD, imports=imports)


ACTING = [
    spread(
        "temperature zero takes the spread away",
        "action = net.warm(obs, temperature=0.0)",
        "argmax",
        "explicit-call-site",
    ),
    spread(
        "a temperature that cannot be read",
        "action = net.warm(obs, temperature=float(open('t').read()))",
        None,
        None,
    ),
    spread(
        "a temperature above zero", "action = net.warm(obs, temperature=0.5)", "sampled", "explicit-call-site"
    ),
    spread(
        "a temperature that nobody reads",
        "action = net.deaf(obs, temperature=0.0)",
        "sampled",
        "explicit-call-site",
    ),
    spread(
        "a loop that surely runs",
        "action = net.unrolled(obs, steps=1, sample=True)",
        "sampled",
        "explicit-call-site",
    ),
    spread(
        "a loop that may not run",
        "action = net.unrolled(obs, steps=int(open('n').read()), sample=True)",
        None,
        None,
    ),
    spread(
        "the mean of what is drawn from elsewhere",
        "action = net.centre(obs, draw=False)",
        "argmax",
        "explicit-call-site",
    ),
    spread("the mean of something that is not known", "action = net.middle(obs)", None, None),
    spread("a condition on a class that is not known", "action = net.chosen(obs, args.eps)", None, None),
    spread(
        "noise that is added in place",
        "action = net.body(obs)\naction += 0.1 * torch.randn(15)",
        None,
        None,
    ),
]
