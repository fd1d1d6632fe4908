"""Small repositories written for these tests: the parts that many of them share."""

from __future__ import annotations

MODEL = """
import torch
from torch import nn
from torch.distributions import Categorical


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.body = nn.Linear(size, 15)

    def dist(self, obs):
        return Categorical(logits=self.body(obs))

    def act(self, obs, deterministic=False):
        pi = self.dist(obs)
        if deterministic:
            action = pi.probs.argmax(-1)
        else:
            action = pi.sample()
        return action, pi.log_prob(action)

    def draw(self, obs):
        pi = self.dist(obs)
        action = pi.sample()
        return action, pi.log_prob(action), pi.entropy()
"""

#: A training script; `{evaluation}` is called once per update, `{setup}` runs before the loop.
TRAIN = """
import argparse
import torch
from procgen import ProcgenEnv
from net import Net
{imports}

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--num_levels', type=int, default=200)
    parser.add_argument('--deterministic_eval', action='store_true')
    parser.add_argument('--eps', type=float, default=0.05)
    args = parser.parse_args()
    envs = ProcgenEnv(num_envs=64, env_name='heist', num_levels=args.num_levels, start_level=0)
    net = Net(64)
    optimizer = torch.optim.Adam(net.parameters())
{setup}
    obs = envs.reset()
    for update in range(1000):
        for step in range(256):
            action, logprob, entropy = net.draw(obs)
            obs, reward, done, info = envs.step(action.cpu().numpy())
{rollout}
        loss = (logprob * reward - entropy).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{evaluation}


if __name__ == '__main__':
    main()
"""

EVALUATE = """
import numpy as np
from procgen import ProcgenEnv


def evaluate(args, net{parameters}):
    envs = ProcgenEnv(num_envs=1, env_name='heist', num_levels={levels}, start_level={start})
    obs = envs.reset()
    returns = []
    while len(returns) < 10:
{action}
        obs, _, done, infos = envs.step(action)
        for info in infos:
            if 'episode' in info:
                returns.append(info['episode']['r'])
    return np.mean(returns)
"""


def train(*, imports: str = "", setup: str = "", rollout: str = "", evaluation: str = "") -> str:
    def indent(text: str, by: int) -> str:
        return "\n".join(" " * by + line for line in text.splitlines())

    return TRAIN.format(
        imports=imports, setup=indent(setup, 4), rollout=indent(rollout, 12), evaluation=indent(evaluation, 8)
    )


def evaluate(action: str, *, parameters: str = "", levels: str = "0", start: str = "0") -> str:
    indented = "\n".join(" " * 8 + line for line in action.splitlines())
    return EVALUATE.format(action=indented, parameters=parameters, levels=levels, start=start)


def frozen(
    action: str, *, call: str = "evaluate(args, net)", parameters: str = "", levels: str = "0"
) -> dict[str, str]:
    """A repository that evaluates frozen weights once per update."""
    return {
        "net.py": MODEL,
        "evaluation.py": evaluate(action, parameters=parameters, levels=levels),
        "train.py": train(imports="from evaluation import evaluate", evaluation=f"print({call})"),
    }


def in_loop(*, test_levels: str = "0", act: str = "net.draw(obs_test)") -> dict[str, str]:
    """A repository in which a second environment is stepped during training."""
    return {
        "net.py": MODEL,
        "train.py": train(
            setup=(
                f"test_envs = ProcgenEnv(num_envs=64, env_name='heist', num_levels={test_levels}, start_level=0)\n"
                "obs_test = test_envs.reset()\n"
                "test_returns = []"
            ),
            rollout=(
                f"chosen, _, _ = {act}\n"
                "obs_test, _, _, info_test = test_envs.step(chosen.cpu().numpy())\n"
                "for item in info_test:\n"
                "    if 'episode' in item:\n"
                "        test_returns.append(item['episode']['r'])"
            ),
            evaluation="print(sum(test_returns[-100:]) / 100)",
        ),
    }
