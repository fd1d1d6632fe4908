"""Small repositories whose evaluation is the training loop with learning switched off, or whose agent gin chooses."""

from __future__ import annotations

from difficulties import Difficulty, acting
from smallrepos import MODEL

_AGENT = """
import random
import gin
import torch
from torch import nn
from torch.distributions import Categorical


@gin.configurable
class ValueAgent:
    def __init__(self, size, epsilon_train=0.1, epsilon_eval=0.01, eval_mode=False):
        self.net = nn.Linear(size, 15)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.epsilon_train = epsilon_train
        self.epsilon_eval = epsilon_eval
        self.eval_mode = eval_mode
        self.memory = []

    def begin(self, obs):
        return self.choose(obs)

    def step(self, reward, obs):
        if not self.eval_mode:
            self.memory.append((reward, obs))
            self.learn()
        return self.choose(obs)

    def choose(self, obs):
        epsilon = self.epsilon_eval if self.eval_mode else self.epsilon_train
        if random.random() <= epsilon:
            return random.randint(0, 14)
        return self.net(obs).argmax(-1)

    def learn(self):
        loss = self.net(self.memory[-1][1]).mean()
        loss.backward()
        self.optimizer.step()


@gin.configurable
class DrawingAgent(ValueAgent):
    def choose(self, obs):
        return Categorical(logits=self.net(obs)).sample()
"""
_RUNNER = """
import sys
import gin
import gym
from agents import DrawingAgent, ValueAgent


@gin.configurable
def make_agent(size, kind=None):
    if kind == 'values':
        return ValueAgent(size)
    elif kind == 'draws':
        return DrawingAgent(size)
    raise ValueError(kind)


@gin.configurable
class Runner:
    def __init__(self, name='CartPole-v1', steps=1000):
        self.env = gym.make(name)
        self.agent = make_agent(4)
        self.steps = steps

    def start(self):
        obs = self.env.reset()
        return self.agent.begin(obs)

    def episode(self):
        action = self.start()
        total = 0.0
        while True:
            obs, reward, done, info = self.env.step(action)
            total += reward
            if done:
                break
            action = self.agent.step(reward, obs)
        return total

    def phase(self):
        return [self.episode() for _ in range(self.steps)]

    def train_phase(self):
        self.agent.eval_mode = False
        return self.phase()

    def eval_phase(self):
        self.agent.eval_mode = {flag}
        return self.phase()

    def run(self):
        for iteration in range(200):
            self.train_phase()
            print(sum(self.eval_phase()))


if __name__ == '__main__':
    {parse}
    Runner().run()
"""
_VALUES = "make_agent.kind = 'values'\nRunner.steps = 50\nValueAgent.epsilon_eval = 0.001\n"
_DRAWS = "make_agent.kind = 'draws'\n"


def chosen_by_gin(
    name: str,
    gin: dict[str, str],
    rule: str | None,
    provenance: str | None,
    *,
    parse: str = "gin.parse_config_file(sys.argv[1])",
    flag: str = "True",
    in_loop: bool | None = False,
) -> Difficulty:
    files = {"agents.py": _AGENT, "run.py": _RUNNER.replace("{flag}", flag).replace("{parse}", parse), **gin}
    return Difficulty(name, files, (False, rule, provenance, in_loop))


_LOOP = """
import gym
import torch
from net import Net


def play(env, net, optimizer, {parameter}):
    obs = env.reset()
    done, total, losses = False, 0.0, []
    while not done:
        action, logprob = net.act(obs, deterministic={deterministic})
        obs, reward, done, info = env.step(action)
        total += reward
        if {condition}:
            loss = -logprob * reward
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return total


def main():
    env = gym.make('CartPole-v1')
    net = Net(4)
    optimizer = torch.optim.Adam(net.parameters())
    for episode in range(1000):
        play(env, net, optimizer, {train})
        print(play(env, net, optimizer, {test}))


if __name__ == '__main__':
    main()
"""


def told_not_to_learn(
    name: str, truth: tuple[bool | None, str | None, str | None, bool | None], **words: str
) -> Difficulty:
    given = {"parameter": "training=True", "deterministic": "not training", "condition": "training"} | words
    text = _LOOP
    for key, value in ({"train": "training=True", "test": "training=False"} | given).items():
        text = text.replace("{" + key + "}", value)
    return Difficulty(name, {"net.py": MODEL, "main.py": text}, truth)


_MODES = """
import argparse
import gym
import torch
from net import Net


def train(env, net):
    optimizer = torch.optim.Adam(net.parameters())
    obs = env.reset()
    for update in range(1000):
        action, logprob = net.act(obs)
        obs, reward, done, info = env.step(action)
        loss = -logprob * reward
        loss.backward()
        optimizer.step()


def show(env, net):
    obs = env.reset()
    for _ in range(1000):
        action, _ = net.act(obs, deterministic=True)
        obs, reward, done, info = env.step(action)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--mode', default='train')
    args = parser.parse_args()
    env, net = gym.make('CartPole-v1'), Net(4)
    if args.mode == 'train':
        train(env, net)
    else:
        show(env, net)


if __name__ == '__main__':
    main()
"""
_CONTINUED = """
    def phase(self):
        returns = []
        for _ in range(self.steps):
            if self.limit is None:
                returns.append(self.go_on())
            else:
                returns.append(self.episode())
        return returns

    def go_on(self):
        if self.is_over:
            self.action = self.start()
        obs, reward, self.is_over, info = self.env.step(self.action)
        self.action = self.agent.step(reward, obs)
        return reward
"""
_PLAIN_PHASE = """
    def phase(self):
        return [self.episode() for _ in range(self.steps)]
"""


def by_a_setting() -> Difficulty:
    """The way in which episodes are played is a setting, and only its default starts them afresh."""
    text = _RUNNER.replace("{flag}", "True").replace("{parse}", "gin.parse_config_file(sys.argv[1])")
    text = text.replace(_PLAIN_PHASE, _CONTINUED).replace("steps=1000):", "steps=1000, limit=100):")
    text = text.replace("self.steps = steps", "self.steps, self.limit, self.is_over = steps, limit, True")
    files = {"agents.py": _AGENT, "run.py": text, "a.gin": _VALUES}
    truth = (False, "epsilon-greedy", "config-option", False)
    return Difficulty("a setting says how episodes are played", files, truth)


_NAMED = """
import gym
import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from net import Net


class Policy(ActorCriticPolicy):
    pass


def main():
    env, net = gym.make('CartPole-v1'), Net(4)
    policy = Policy(env.observation_space, env.action_space)
    optimizer = torch.optim.Adam(net.parameters())
    obs = env.reset()
    for update in range(1000):
        action, logprob, _ = net.draw(obs)
        obs, reward, done, info = env.step(action)
        values = policy.evaluate_policy(obs, action)
        loss = (values - logprob * reward).mean()
        loss.backward()
        optimizer.step()


if __name__ == '__main__':
    main()
"""
_SCANNED = """
import jax
import gymnax
import distrax
from flax.training.train_state import TrainState


def make_train(config):
    env, params = gymnax.make('CartPole-v1')

    def train(rng):
        state = TrainState.create(apply_fn=config.net.apply, params=config.params, tx=config.tx)
        obs, env_state = env.reset(rng, params)

        def improve(carry, _):
            def play(carry, _):
                state, env_state, obs, rng = carry
                action = distrax.Categorical(logits=state.apply_fn(state.params, obs)).sample(seed=rng)
                obs, env_state, reward, done, info = env.step(rng, env_state, action, params)
                return (state, env_state, obs, rng), reward

            carry, rewards = jax.lax.scan(play, carry, None, 128)
            state = carry[0]
            state = state.apply_gradients(grads=jax.grad(loss)(state.params, rewards))
            return (state, *carry[1:]), rewards

        return jax.lax.scan(improve, (state, env_state, obs, rng), None, 1000)

    return train


if __name__ == '__main__':
    train_fast = jax.jit(make_train(settings))
    train_fast(jax.random.PRNGKey(0))
"""
_PARTS = """
def update(net, optimizer, logprob, reward):
    loss = -logprob * reward
    loss.backward()
    optimizer.step()


def evaluate(env, net):
    obs = env.reset()
    for _ in range(1000):
        action, _ = net.act(obs, deterministic=True)
        obs, reward, done, info = env.step(action)
"""
_ALIASED = """
import gym
import torch
from net import Net
from parts import evaluate as measure
from parts import update as improve


def main():
    env, net = gym.make('CartPole-v1'), Net(4)
    other = gym.make('CartPole-v1')
    optimizer = torch.optim.Adam(net.parameters())
    check = measure
    obs = env.reset()
    for number in range(1000):
        action, logprob, _ = net.draw(obs)
        obs, reward, done, info = env.step(action)
        improve(net, optimizer, logprob, reward)
        check(other, net)


if __name__ == '__main__':
    main()
"""

SWITCHED = [
    by_a_setting(),
    Difficulty(
        "an option chooses between training and test",
        {"net.py": MODEL, "main.py": _MODES},
        (False, "argmax", "explicit-call-site", False),
    ),
    chosen_by_gin(
        "the one gin file chooses the agent", {"a.gin": _VALUES}, "epsilon-greedy", "config-option"
    ),
    chosen_by_gin("gin files that choose different agents", {"a.gin": _VALUES, "b.gin": _DRAWS}, None, None),
    chosen_by_gin(
        "the script names one of two gin files",
        {"a.gin": _VALUES, "b.gin": _DRAWS},
        "sampled",
        None,
        parse="gin.parse_config_file('b.gin')",
    ),
    chosen_by_gin(
        "a gin file includes the one that chooses",
        {"a.gin": "include 'base/b.gin'\nRunner.steps = 5\n", "base/b.gin": _VALUES},
        "epsilon-greedy",
        "config-option",
        parse="gin.parse_config_file('a.gin')",
    ),
    chosen_by_gin(
        "bindings in the code choose the agent",
        {},
        "epsilon-greedy",
        "config-option",
        parse="gin.parse_config(['make_agent.kind = \"values\"'])",
    ),
    chosen_by_gin(
        "a macro names the agent",
        {"a.gin": "KIND = 'values'\nmake_agent.kind = %KIND\n"},
        "epsilon-greedy",
        "config-option",
    ),
    chosen_by_gin(
        "no gin file is in the repository, and the agent is none of the known ones without one",
        {},
        None,
        None,
    ),
    Difficulty(
        "a reference in a gin file makes the agent",
        {
            "agents.py": _AGENT,
            "run.py": _RUNNER.replace("{flag}", "True")
            .replace("{parse}", "gin.parse_config_file(sys.argv[1])")
            .replace("name='CartPole-v1', steps=1000", "agent, steps=1000")
            .replace("self.agent = make_agent(4)", "self.agent = agent")
            .replace("gym.make(name)", "gym.make('CartPole-v1')"),
            "a.gin": "Runner.agent = @agents.ValueAgent()\nValueAgent.size = 4\n",
        },
        (False, "epsilon-greedy", "config-option", False),
    ),
    told_not_to_learn(
        "one function trains and tests, told by a flag", (False, "argmax", "explicit-call-site", False)
    ),
    told_not_to_learn(
        "the flag of the test leaves learning on",
        (False, "sampled", "n/a", None),
        test="training=True",
    ),
    told_not_to_learn(
        "one function learns under a setting that cannot be read",
        (None, None, None, None),
        test="training=unknown_setting()",
    ),
    told_not_to_learn(
        "a flag chooses the rule while weights change all the time",
        (None, None, None, None),
        condition="done",
    ),
    acting(
        "a random action is put into an array of actions",
        "action, _ = net.act(obs, deterministic=True)\nfor i in range(64):\n    if np.random.rand() < 0.05:\n"
        "        action[i] = envs.action_space.sample()",
        "epsilon-greedy",
        "explicit-call-site",
        imports="import numpy as np\n",
    ),
    acting(
        "noise is added to one place of an action",
        "action, _ = net.act(obs, deterministic=True)\naction[0] += 0.1 * torch.randn(1)",
        None,
        None,
        imports="import torch\n",
    ),
    Difficulty(
        "training in a scan is not an evaluation",
        {"train.py": _SCANNED},
        (False, "sampled", "n/a", None),
    ),
    acting(
        "random numbers in a list of inputs",
        "action = net.body(torch.cat([obs, torch.randn(4)], 1))",
        None,
        None,
        imports="import torch\n",
    ),
    acting(
        "a method adds noise to an action",
        "action, _ = net.act(obs, deterministic=True)\naction = action.add_(torch.randn(15))",
        None,
        None,
        imports="import torch\n",
    ),
    acting(
        "a method moves an action",
        "action = net.act(obs, deterministic=True)[0].to('cpu').view(-1)",
        "argmax",
        "explicit-call-site",
    ),
    Difficulty(
        "a method has the name of a library's evaluation",
        {"net.py": MODEL, "train.py": _NAMED},
        (False, "sampled", "n/a", None),
    ),
    Difficulty(
        "updates and evaluations are imported under other names",
        {"net.py": MODEL, "parts.py": _PARTS, "train.py": _ALIASED},
        (False, "argmax", "explicit-call-site", False),
    ),
]
