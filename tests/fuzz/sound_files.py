"""One sound policy file of each kind, small, for fuzzing to damage."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sb3_contrib import RecurrentPPO
from stable_baselines3 import DQN, PPO

from fuzz.input_files import write_sound_inputs
from fuzz.side_files import write_side_files
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import write_checkpoint


class Agent(torch.nn.Module):
    """An agent with the interface of CleanRL's."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        self.critic = torch.nn.Linear(4, 1)
        self.actor = torch.nn.Linear(4, envs.single_action_space.n)

    def get_action_and_value(self, x: torch.Tensor, action: Any = None) -> Any:
        return action, self.actor(x), None, self.critic(x)


class Spaces:
    class single_action_space:
        n = 3


def write_every_kind(folder: Path) -> None:
    """Write a sound file of every kind: the policies, and below `inputs` everything else."""
    write_sound_files(folder)
    write_sound_inputs(folder / "inputs")
    write_side_files(folder / "inputs", folder / "checkpoint.safetensors")


def write_sound_files(folder: Path) -> None:
    """Write the policy file of every kind."""
    torch.manual_seed(0)
    small = {"net_arch": [4]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cart = gymnasium.make("CartPole-v1")
        PPO("MlpPolicy", cart, policy_kwargs=small, device="cpu").save(folder / "ppo.zip")
        DQN("MlpPolicy", cart, policy_kwargs=small, device="cpu", buffer_size=10).save(folder / "dqn.zip")
        lstm = {**small, "lstm_hidden_size": 4}
        RecurrentPPO("MlpLstmPolicy", cart, policy_kwargs=lstm, device="cpu").save(folder / "recurrent.zip")
        torch.save(Agent(Spaces).state_dict(), folder / "agent.pt")
        layer = torch.nn.Linear(4, 3)
        torch.save({"epoch": 3, "state_dict": layer.state_dict()}, folder / "weights.pt")
    _write_onnx(folder / "net.onnx")
    np.savez(folder / "stats.npz", mean=np.zeros(4), var=np.ones(4), epsilon=1e-8, clip=10.0)
    numbers = {"mean": [0.0] * 4, "var": [1.0] * 4, "epsilon": 1e-8, "clip": 10.0}
    (folder / "stats.json").write_text(json.dumps(numbers))
    header = {
        "game": "miner", "mode": "easy", "levels": "0:200", "encoder": "impala", "seed": 4, "steps": 4096,
        "observation_shape": [16, 16, 3], "n_actions": 15,
    }  # fmt: skip
    agent = make_agent("impala", observation_shape=(16, 16, 3), n_actions=15, seed=4)
    write_checkpoint(folder / "checkpoint.safetensors", agent, header)


def _write_onnx(path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((4, 3), dtype=np.float32), "w")
    value = lambda name, width: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])  # noqa: E731
    bias = numpy_helper.from_array(np.ones(3, dtype=np.float32), "constant")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Constant", [], ["b"], value=bias),
        helper.make_node("Add", ["h", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", 4)], [value("y", 3)], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
