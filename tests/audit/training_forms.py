"""Small repositories in which training takes another form: a dataset, a vector of workers, lists of transitions."""

from __future__ import annotations

from difficulties import Difficulty
from smallrepos import MODEL

_EVALUATE = """
import torch
from net import Net


def evaluate(env, net):
    obs = env.reset()
    total = 0.0
    for _ in range(100):
        action, _ = net.act(obs, deterministic={flag})
        obs, reward, done, info = env.step(action)
        total += reward
    return total
"""
_OFFLINE = """
import d4rl
import gym
import torch
from evaluation import evaluate
from net import Net


def main():
    env = gym.make('hopper-medium-v2')
    played = gym.make({played})
    data = d4rl.qlearning_dataset(env)
    net = Net(64)
    optimizer = torch.optim.Adam(net.parameters())
    for update in range(1000):
        loss = (net.dist(data['observations']).log_prob(data['actions'])).mean()
        loss.backward()
        optimizer.step()
        print(evaluate({given}, net))


if __name__ == '__main__':
    main()
"""
_VECTOR = """
import multiprocessing
import gym
import torch
from evaluation import evaluate
from net import Net


def work(remote, name):
    env = gym.make(name)
    while True:
        command, data = remote.recv()
        remote.send(env.step(data) if command == 'step' else env.reset())


class Workers:
    def __init__(self, name):
        self.near, far = multiprocessing.Pipe()
        process = multiprocessing.Process(target=work, args=(far, name))
        process.start()

    def reset(self):
        self.near.send(('reset', None))
        return self.near.recv()

    def step(self, action):
        self.near.send(('step', action))
        return self.near.recv()


def main():
    envs = Workers('CartPole-v1')
    net = Net(64)
    optimizer = torch.optim.Adam(net.parameters())
    obs = envs.reset()
    for update in range(1000):
        for step in range(256):
            action, logprob, entropy = net.draw(obs)
            obs, reward, done, info = envs.step(action)
        loss = (logprob * reward - entropy).mean()
        loss.backward()
        optimizer.step()
        print(evaluate(gym.make({played}), net))


if __name__ == '__main__':
    main()
"""
_LISTS = """
import gym
import torch
from net import Net


def main():
    env = gym.make('CartPole-v1')
    net = Net(64)
    optimizer = torch.optim.Adam(net.parameters())
    for update in range(1000):
        states, actions, rewards = [], [], []
        steps = 0
        while steps < 256:
            obs = env.reset()
            done = False
            while not done:
                action = net.dist(obs).sample()
                states.append(obs)
                actions.append(action)
                obs, reward, done, info = env.step(action)
                rewards.append(reward)
                steps += 1
        loss = net.dist(torch.tensor(states)).log_prob(torch.tensor(0)).mean()
        loss.backward()
        optimizer.step()
        print(sum(rewards))


if __name__ == '__main__':
    main()
"""
_APART = """
import gym
import torch
from net import Net

env = gym.make('CartPole-v1')
net = Net(64)
optimizer = torch.optim.Adam(net.parameters())
for episode in range(1000):
    obs = env.reset()
    done = False
    while not done:
        action, logprob, entropy = net.draw(obs)
        obs, reward, done, info = env.step(action)
        loss = (logprob * reward - entropy).mean()
        loss.backward()
        optimizer.step()
    if episode % 10 == 0:
        obs = env.reset()
        total, done = 0.0, False
        while not done:
            action, _ = net.act(obs, deterministic=True)
            obs, reward, done, info = env.step(action)
            total += reward
            {more}
        print(total)
"""
_TOLD = """
import gym
import torch
from evaluation import evaluate
from net import Net


def main():
    env = gym.make('CartPole-v1')
    net = Net(64)
    optimizer = torch.optim.Adam(net.parameters())
    obs = env.reset()
    for update in range(1000):
        for step in range(256):
            action, logprob = net.told(obs, deterministic={flag})
            obs, reward, done, info = env.step(action)
        loss = (logprob * reward).mean()
        loss.backward()
        optimizer.step()
        print(evaluate(gym.make('CartPole-v1'), net))


if __name__ == '__main__':
    main()
"""
_TOLD_METHOD = """
    def told(self, obs, deterministic):
        pi = self.dist(obs)
        if deterministic:
            chosen = pi.probs.argmax(-1)
            return chosen, None
        else:
            chosen = pi.sample()
            return chosen, pi.log_prob(chosen)
"""
_COUNTED = """
import torch
from net import Net
from procgen import ProcgenEnv


class Learner:
    def __init__(self, env, other):
        self.env, self.other = env, other
        self.net = Net(64)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.steps = 0
        self.due = 0

    def train(self):
        obs = self.env.reset()
        while self.steps < 1000000:
            for _ in range(256):
                action, logprob, entropy = self.net.draw(obs)
                obs, reward, done, info = self.env.step(action)
            (logprob * reward - entropy).mean().backward()
            self.optimizer.step()
            self.steps += 256
            if self.steps > self.due:
{begin}
                for _ in range(1000):
                    action, _ = self.net.act(self.seen, deterministic=True)
                    self.seen, reward, done, info = self.other.step(action)
                self.due += 1000


if __name__ == '__main__':
    env = ProcgenEnv(num_envs=64, env_name='heist', num_levels=200, start_level=0)
    Learner(env, ProcgenEnv(num_envs=64, env_name='heist', num_levels=0, start_level=0)).train()
"""
_COLLECTORS = """
import gym
import torch
from net import Net


class Collector:
    def __init__(self, env):
        self.env = env
        self.obs = env.reset()
        self.kept = []

    def collect(self, net, steps, deterministic):
        for _ in range(steps):
            action, _ = net.act(self.obs, deterministic=deterministic)
            self.obs, reward, done, info = self.env.step(action)
            self.kept.append((self.obs, reward))
            if done:
                self.obs = self.env.reset()


def main():
    train_collector = Collector(gym.make('CartPole-v1'))
    test_collector = Collector(gym.make('CartPole-v1'))
    net = Net(64)
    optimizer = torch.optim.Adam(net.parameters())
    for update in range(1000):
        train_collector.collect(net, 256, False)
        loss(net, train_collector.kept).backward()
        optimizer.step()
        test_collector.collect(net, 256, False)


if __name__ == '__main__':
    main()
"""
_GROWN = """
import argparse
import torch
from evaluation import evaluate
from net import Net
from procgen import ProcgenEnv

parser = argparse.ArgumentParser()
parser.add_argument('--num_levels', type=int, default=200)
args = parser.parse_args()
args.num_levels *= 3
env = ProcgenEnv(num_envs=64, env_name='heist', num_levels=args.num_levels, start_level=0)
net = Net(64)
optimizer = torch.optim.Adam(net.parameters())
obs = env.reset()
for update in range(1000):
    action, logprob, entropy = net.draw(obs)
    obs, reward, done, info = env.step(action)
    (logprob * reward - entropy).mean().backward()
    optimizer.step()
print(evaluate(ProcgenEnv(num_envs=1, env_name='heist', num_levels=100, start_level=300), net))
"""
_PLAYED = (False, "argmax", "explicit-call-site", False)


def form(
    name: str, script: str, truth: tuple[bool | None, str | None, str | None, bool | None]
) -> Difficulty:
    """A repository of a network, an evaluation and a training script."""
    files = {"net.py": MODEL, "evaluation.py": _EVALUATE.format(flag="True"), "train.py": script}
    return Difficulty(name, files, truth)


def told(name: str, flag: str, rule: str | None, provenance: str | None) -> Difficulty:
    """Both calls of one method state a literal, or one does not."""
    files = {
        "net.py": MODEL + _TOLD_METHOD,
        "evaluation.py": _EVALUATE.format(flag="True").replace("net.act", "net.told"),
        "train.py": _TOLD.format(flag=flag),
    }
    return Difficulty(name, files, (False, rule, provenance, False))


FORMS = [
    form(
        "a dataset of the environment that is played",
        _OFFLINE.format(played="'hopper-medium-v2'", given="env"),
        _PLAYED,
    ),
    form(
        "a dataset of another environment than the one that is played",
        _OFFLINE.format(played="'walker2d-medium-v2'", given="played"),
        (None, *_PLAYED[1:]),
    ),
    form("workers that play the environment of the test", _VECTOR.format(played="'CartPole-v1'"), _PLAYED),
    form(
        "workers that play another environment than the test",
        _VECTOR.format(played="'Acrobot-v1'"),
        (None, *_PLAYED[1:]),
    ),
    Difficulty(
        "whole episodes that are kept in lists",
        {"net.py": MODEL, "train.py": _LISTS},
        (False, "sampled", "n/a", None),
    ),
    Difficulty(
        "an episode without learning in the loop that learns",
        {"net.py": MODEL, "train.py": _APART.format(more="pass")},
        _PLAYED,
    ),
    Difficulty(
        "a second episode that is learned from",
        {"net.py": MODEL, "train.py": _APART.format(more="net.body(obs).sum().backward(); optimizer.step()")},
        (False, None, "n/a", None),
    ),
    told("one method, told the opposite in training", "False", "argmax", "explicit-call-site"),
    Difficulty(
        "an evaluation that is due when a counter says so",
        {"net.py": MODEL, "train.py": _COUNTED.format(begin=" " * 16 + "self.seen = self.other.reset()")},
        (True, *_PLAYED[1:]),
    ),
    Difficulty(
        "a second environment that is reset only once",
        {
            "net.py": MODEL,
            "train.py": _COUNTED.format(
                begin=" " * 16 + "if self.due == 0:\n" + " " * 20 + "self.seen = self.other.reset()"
            ),
        },
        (True, *_PLAYED[1:3], True),
    ),
    form("a number of levels that is multiplied after parsing", _GROWN, _PLAYED),
    Difficulty(
        "a second collector that is called a test",
        {"net.py": MODEL, "train.py": _COLLECTORS},
        (False, "sampled", "explicit-call-site", True),
    ),
]
