"""Forms that are answered without proof: an answer that is likely, or at least the right one."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import MODEL, frozen, train

from gapfloor.audit.judgement.verdict import AuditVerdict
from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast


def read(folder: Path, files: dict[str, str]) -> tuple[str, str, str]:
    verdict = scan(str(write_files(folder, files))).verdict
    return verdict.rule, verdict.provenance, verdict.levels["rule"]


GREEDY = (
    "pi = net.dist(obs)\n"
    "greedy_probs = (pi.probs == pi.probs.max()).float()\naction = torch.multinomial(greedy_probs, 1)"
)
WRAPPED = (
    "from torch.distributions import Normal, TransformedDistribution, TanhTransform\n"
    "pi = TransformedDistribution(Normal(net.body(obs), 1.0), [TanhTransform()])\n"
    "action = torch.tanh(pi.base_dist.mean)"
)
RUNNING = "pi = net.dist(obs)\nlimit = np.random.rand(1)\naction = (pi.probs.cumsum(-1) > limit).argmax(-1)"
WHERE = "pi = net.dist(obs)\naction = torch.where(greedy, pi.probs.argmax(-1), pi.sample())"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (GREEDY, ("argmax", "explicit-call-site", "likely")),
        (WRAPPED, ("argmax", "explicit-call-site", "likely")),
        (RUNNING, ("sampled", "explicit-call-site", "proved")),
        (WHERE, ("argmax", "explicit-call-site", "proved")),
        ("action = load(args).greedy_action(obs)", ("argmax", "explicit-call-site", "likely")),
    ],
)
def test_a_choice_in_another_form(tmp_path: Path, action: str, expected: tuple[str, str, str]):
    files = frozen(action, call="evaluate(args, net, True)", parameters=", greedy")
    files["evaluation.py"] = "import torch\nfrom hub import load\n" + files["evaluation.py"]
    assert read(tmp_path, files) == expected


BASE = """
class BaseAgent:
    def __init__(self, envs, net):
        self.envs, self.net = envs, net

    def choose(self, obs):
        raise NotImplementedError

    def evaluate(self):
        obs, total = self.envs.reset(), 0
        for _ in range(500):
            action = self.choose(obs)
            obs, reward, done, info = self.envs.step(action)
            total += reward
        return total


class Agent(BaseAgent):
    def choose(self, obs):
        return self.net.dist(obs).probs.argmax(-1)
"""


def test_what_a_base_class_leaves_to_its_subclasses_acts(tmp_path: Path):
    script = train(imports="from measure import BaseAgent", evaluation="BaseAgent(envs, net).evaluate()")
    assert read(tmp_path, {"net.py": MODEL, "measure.py": BASE, "train.py": script})[0] == "argmax"


def test_a_flag_keeps_its_default_behind_arguments_that_cannot_be_read(tmp_path: Path):
    files = frozen("action = choose(net, *keep(obs))")
    files["evaluation.py"] += (
        "\ndef choose(net, obs, greedy=True):\n    pi = net.dist(obs)\n"
        "    return pi.probs.argmax(-1) if greedy else pi.sample()\n"
    )
    assert read(tmp_path, files)[::2] == ("argmax", "likely")


INITIALIZED = """
class Body(nn.Module):
    def forward(self, obs, greedy=False):
        pi = Categorical(logits=self.layer(obs))
        return pi.probs.argmax(-1) if greedy else pi.sample()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = Body().apply(start)

    def forward(self, obs):
        return self.actor(obs)
"""


def test_a_network_stays_itself_when_a_function_initializes_it(tmp_path: Path):
    files = frozen("action = agent.forward(obs)", call="evaluate(args, Agent())")
    files["evaluation.py"] = files["evaluation.py"].replace("(args, net)", "(args, agent)")
    files["net.py"] += INITIALIZED
    files["train.py"] = files["train.py"].replace("from net import Net", "from net import Agent, Net")
    assert read(tmp_path, files)[:2] == ("sampled", "default-argument")


def test_async_was_a_name_in_older_python(tmp_path: Path):
    files = frozen("action = net.act(obs, deterministic=True)[0]")
    files["evaluation.py"] = files["evaluation.py"].replace("num_envs=1,", "num_envs=1, async=True,")
    assert read(tmp_path, files)[0] == "argmax"


def test_training_in_an_environment_from_elsewhere_is_a_likely_answer(tmp_path: Path):
    text = train().replace("from procgen import ProcgenEnv", "from elsewhere import make")
    text = text.replace(
        "ProcgenEnv(num_envs=64, env_name='heist', num_levels=args.num_levels, start_level=0)", "make()"
    )
    assert read(tmp_path, {"net.py": MODEL, "train.py": text}) == ("sampled", "n/a", "likely")


WORKER = """
from torch.multiprocessing import Pipe


def evaluate(net):
    parent_conn, child_conn = Pipe()
    start(child_conn)
    obs, total = parent_conn.recv(), 0
    for _ in range(500):
        action = net.dist(obs).sample()
        parent_conn.send(action)
        obs, reward = parent_conn.recv()
        total += reward
    return total
"""


def test_an_action_that_is_sent_to_a_worker_is_a_step(tmp_path: Path):
    files = {
        "net.py": MODEL,
        "worker.py": WORKER,
        "eval.py": "from worker import evaluate\nfrom net import Net\nevaluate(Net(4))\n",
    }
    assert read(tmp_path, files) == ("sampled", "explicit-call-site", "likely")


TEXTS = """
import argparse
import torch
from vllm import LLM, SamplingParams

parser = argparse.ArgumentParser()
parser.add_argument("--eval_temperature", type=float, default=0.0)
args = parser.parse_args()


def rollout(model, prompts):
    return model.generate(prompts, SamplingParams(temperature=1.0))


def evaluate(model, prompts):
    answers = model.generate(prompts, sampling_params=SamplingParams(temperature=args.eval_temperature))
    return sum(map(score, answers))


def main():
    model, optimizer = LLM("tiny"), torch.optim.Adam(weights())
    for step in range(100):
        learn(rollout(model, "train")).backward()
        optimizer.step()
        print(evaluate(model, "test"))


main()
"""
OWN = "model.generate(prompts, sampling_params=SamplingParams(temperature=args.eval_temperature))"
SHARED = TEXTS.replace("SamplingParams(temperature=1.0)", "do_sample=True").replace(
    OWN, "rollout(model, prompts)"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(TEXTS, ("argmax", "config-option", "likely")), (SHARED, ("sampled", "training-rollout", "likely"))],
)
def test_a_language_model_that_writes_answers(tmp_path: Path, text: str, expected: tuple[str, str, str]):
    assert read(tmp_path, {"train.py": text}) == expected


def test_one_script_of_many_that_differs_leaves_a_likely_answer(tmp_path: Path):
    files = frozen("action = net.dist(obs).sample()")
    for number in range(4):
        files[f"train_{number}.py"] = files["train.py"]
    files["other.py"] = files["evaluation.py"].replace(
        "net.dist(obs).sample()", "net.act(obs, deterministic=True)[0]"
    )
    files["train_4.py"] = files["train.py"].replace("from evaluation", "from other")
    assert read(tmp_path, files) == ("sampled", "explicit-call-site", "likely")


def test_a_verdict_speaks_of_the_rule_that_was_read(tmp_path: Path):
    files = frozen("action = net.dist(obs).probs.argmax(-1)")
    files["run.py"] = files["train.py"].replace("from evaluation", "from unread")
    files["unread.py"] = files["evaluation.py"].replace(
        "net.dist(obs).probs.argmax(-1)", "hub.load(args)(obs)"
    )
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert isinstance(verdict, AuditVerdict)
    assert (verdict.rule, verdict.levels["rule"]) == ("argmax", "likely")
