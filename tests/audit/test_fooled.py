"""Seven ways in which public code once misled the scanner, each as a small repository with the general mechanism."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import MODEL, evaluate, frozen, in_loop, train

from gapfloor.audit.scan import ScanResult, scan

pytestmark = pytest.mark.fast

AGENT = """
import torch
from torch import nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.body = nn.Linear(size, 15)
        self.optimizer = torch.optim.Adam(self.parameters())

    def __call__(self, obs, training=True):
        if training:
            self.learn(obs)
        dist = Categorical(logits=self.body(obs))
        return dist.sample() if training else dist.probs.argmax(-1)

    def learn(self, obs):
        loss = self.body(obs).mean()
        loss.backward()
        self.optimizer.step()
"""

ENJOY = """
from procgen import ProcgenEnv
from net import Net

if __name__ == '__main__':
    envs = ProcgenEnv(num_envs=1, env_name='heist', num_levels=0, start_level=0)
    net = Net(64)
    obs = envs.reset()
    for _ in range(1000):
        action, logprob, entropy = net.draw(obs)
        obs, reward, done, info = envs.step(action)
"""

SIMULATE = """
def simulate(agent, envs, steps):
    obs = envs.reset()
    for _ in range(steps):
        action = agent(obs)
        obs, reward, done, info = envs.step(action)
"""

SCRIPT = """
import functools
from procgen import ProcgenEnv
from agent import Agent
from tools import simulate


def main():
    train_envs = ProcgenEnv(num_envs=8, env_name='heist', num_levels=200, start_level=0)
    eval_envs = ProcgenEnv(num_envs=8, env_name='heist', num_levels=0, start_level=0)
    random_agent = lambda obs: train_envs.action_space.sample()
    simulate(random_agent, train_envs, 1000)
    agent = Agent(64)
    for _ in range(100):
        eval_policy = functools.partial(agent, training=False)
        simulate(eval_policy, eval_envs, 500)
        simulate(agent, train_envs, 5000)


if __name__ == '__main__':
    main()
"""


def scanned(folder: Path, files: dict[str, str]) -> ScanResult:
    return scan(str(write_files(folder, files)))


def levels_of(result: ScanResult) -> dict[str, str]:
    return dict(result.verdict.levels)


def test_a_random_prefill_is_not_the_evaluation_and_a_partial_flag_is_read(tmp_path: Path):
    result = scanned(tmp_path, {"agent.py": AGENT, "tools.py": SIMULATE, "train.py": SCRIPT})
    assert (result.verdict.rule, result.verdict.provenance) == ("argmax", "explicit-call-site")
    assert "random" not in {path.rule for path in result.paths}


def test_one_function_that_plays_for_training_and_test_is_kept_apart_by_its_callers(tmp_path: Path):
    result = scanned(tmp_path, {"agent.py": AGENT, "tools.py": SIMULATE, "train.py": SCRIPT})
    assert {path.levels for path in result.paths} == {"full distribution"}
    assert result.verdict.evaluates_heldout is True
    assert "sampled" in {item.rule for item in result.training}


def test_methods_that_share_a_name_with_an_update_do_not_learn(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=True)\nvideo.record(envs)\nmodel.predict(obs)")
    files["other.py"] = (
        "class Recorder:\n    def record(self, envs):\n        self.loss.backward()\n\n"
        "class Model:\n    def predict(self, obs):\n        self.optimizer.step()\n"
    )
    result = scanned(tmp_path, files)
    assert (result.verdict.rule, result.verdict.provenance) == ("argmax", "explicit-call-site")
    assert result.verdict.in_loop is False


def test_a_script_that_nothing_reaches_does_not_outvote_the_one_that_runs(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=True)")
    files["library.py"] = (
        "from net import Net\n\n"
        "def evaluate_old(net, env):\n    obs = env.reset()\n    for _ in range(100):\n"
        "        action, _ = net.act(obs)\n        obs, _, _, _ = env.step(action)\n"
    )
    assert scanned(tmp_path, files).verdict.rule == "argmax"


def test_actions_that_are_sent_through_a_pipe_are_followed(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=True)")
    files["evaluation.py"] = (
        "def evaluate(args, net, pipes):\n"
        "    for pipe in pipes:\n        pipe.send(('reset', None))\n"
        "    for _ in range(1000):\n"
        "        obs = [pipe.recv() for pipe in pipes]\n"
        "        action, _ = net.act(obs, deterministic=True)\n"
        "        for pipe, one in zip(pipes, action):\n"
        "            pipe.send(('step', one))\n"
    )
    files["train.py"] = train(
        imports="from evaluation import evaluate", evaluation="print(evaluate(args, net, pipes))"
    )
    result = scanned(tmp_path, files)
    assert [path.rule for path in result.paths] == ["argmax"]
    assert result.paths[0].step.file == "evaluation.py"


def test_an_array_keeps_what_its_list_holds(tmp_path: Path):
    action = (
        "chosen = []\nfor one in obs:\n    action, _ = net.act(one, deterministic=True)\n    chosen.append(action)\n"
        "action = np.array(chosen)"
    )
    result = scanned(tmp_path, frozen(action))
    assert (result.verdict.rule, result.verdict.provenance) == ("argmax", "explicit-call-site")


def test_a_wrapper_that_replaces_actions_at_random_is_part_of_the_rule(tmp_path: Path):
    wrapper = (
        "import gym\nimport random\n\n\n"
        "class Sticky(gym.ActionWrapper):\n"
        "    def action(self, action):\n"
        "        if random.random() < 0.25:\n"
        "            return self.env.action_space.sample()\n"
        "        return action\n"
    )
    text = evaluate("action, _ = net.act(obs, deterministic=True)").replace(
        "    obs = envs.reset()", "    envs = Sticky(envs)\n    obs = envs.reset()"
    )
    files = {
        "net.py": MODEL,
        "sticky.py": wrapper,
        "evaluation.py": "from sticky import Sticky\n" + text,
        "train.py": train(imports="from evaluation import evaluate", evaluation="print(evaluate(args, net))"),
    }
    result = scanned(tmp_path, files)
    assert result.verdict.rule != "argmax"
    assert any("may replace the action" in mark.what for path in result.paths for mark in path.evidence)


def test_an_absence_is_not_claimed_while_the_code_speaks_of_an_evaluation(tmp_path: Path):
    files = {"net.py": MODEL, "train.py": train(evaluation="mystery.evaluate(net, deterministic=True)")}
    result = scanned(tmp_path, files)
    assert set(levels_of(result).values()) == {"open"}
    assert [hint.file for hint in result.hints] == ["train.py"]


def test_without_any_trace_of_an_evaluation_its_absence_is_proved(tmp_path: Path):
    result = scanned(tmp_path, {"net.py": MODEL, "train.py": train()})
    assert (result.verdict.evaluates_heldout, result.verdict.provenance) == (False, "n/a")
    assert levels_of(result)["provenance"] == "proved"


def test_a_method_of_an_unknown_object_is_likely_and_never_proved(tmp_path: Path):
    files = frozen("action, _ = load_policy(args).act(obs)")
    result = scanned(tmp_path, files)
    assert (result.verdict.rule, levels_of(result)["rule"]) == ("sampled", "likely")
    assert any("every class with that method" in text for path in result.paths for text in path.doubts)


def test_numbers_from_a_file_do_not_hide_how_an_action_was_chosen(tmp_path: Path):
    action = (
        "import pickle\nstats = pickle.load(open('stats.pkl', 'rb'))\n"
        "action, _ = net.act(obs, deterministic=True)\naction = action * stats['std'] + stats['mean']"
    )
    assert scanned(tmp_path, frozen(action)).verdict.rule == "argmax"


def test_a_file_that_cannot_be_read_weakens_only_the_scripts_that_import_it(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=True)")
    apart = scanned(tmp_path / "apart", files | {"old.py": "print 'evaluating'\nobs = env.step(a)\n"})
    assert levels_of(apart)["rule"] == "proved"
    files["evaluation.py"] = "import old\n" + files["evaluation.py"]
    used = scanned(tmp_path / "used", files | {"old.py": "print 'evaluating'\nobs = env.step(a)\n"})
    assert (used.verdict.rule, levels_of(used)["rule"]) == ("argmax", "likely")


def test_an_action_that_is_an_index_is_followed(tmp_path: Path):
    agent = """
import gym, numpy as np, torch
from torch import nn


class Agent:
    def __init__(self, net, epsilon_eval=0.5):
        self.net = net
        self.epsilon_eval = epsilon_eval

    def act(self, obs):
        if np.random.rand() < self.epsilon_eval:
            return np.eye(2)[np.random.randint(2)]
        return np.eye(2)[self.net(torch.as_tensor(obs)).argmax().item()]


agent = Agent(nn.Linear(4, 2), epsilon_eval=0.001)
env = gym.make("CartPole-v1")
obs, done = env.reset(), False
while not done:
    obs, reward, done, _ = env.step(agent.act(obs))
"""
    write_files(tmp_path, {"evaluate.py": agent})
    verdict = scan(str(tmp_path)).verdict
    assert (verdict.rule, verdict.provenance) == ("epsilon-greedy", "explicit-call-site")


def test_noise_inside_an_object_of_a_library_stays_noise(tmp_path: Path):
    action = (
        "mean = net.body(obs)\naction = mean + net.spread(obs).sqrt() * Variable(torch.randn(mean.size()))"
    )
    files = frozen(action)
    files["evaluation.py"] = "import torch\nfrom torch.autograd import Variable\n" + files["evaluation.py"]
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert verdict.rule == "sampled"


def test_weights_that_are_loaded_between_two_steps_leave_in_loop_open(tmp_path: Path):
    files = frozen("net.load_state_dict(shared.state_dict())\naction, _ = net.act(obs, deterministic=True)")
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.rule, verdict.in_loop, verdict.levels["in_loop"]) == ("argmax", None, "open")


def test_a_script_that_shows_an_agent_keeps_another_evaluation_from_being_proved(tmp_path: Path):
    files = in_loop()
    files["enjoy.py"] = ENJOY
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.in_loop, verdict.levels["in_loop"]) == (True, "likely")


TABLE = """
import gym, numpy as np


class Agent:
    def __init__(self):
        self.table = {}
        self.optimizer = None

    def choose(self, state):
        if np.random.random() < 0.1:
            return np.random.randint(4)
        return np.argmax(np.array([self.table[(state, a)] for a in range(4)]))

    def METHOD(self, state, action, reward):
        self.table[(state, action)] += 0.1 * (reward - self.table[(state, action)])


env = gym.make("FrozenLake-v0")
agent = Agent()
for episode in range(100):
    state, done = env.reset(), False
    while not done:
        action = agent.choose(state)
        following, reward, done, info = env.step(action)
        agent.METHOD(state, action, reward)
        state = following
"""


@pytest.mark.parametrize(("method", "level"), [("learn", "proved"), ("update", "open")])
def test_a_table_that_is_learned_without_gradients_is_training(tmp_path: Path, method: str, level: str):
    result = scan(str(write_files(tmp_path, {"lake.py": TABLE.replace("METHOD", method)})))
    assert result.paths == ()
    assert result.verdict.levels["provenance"] == level


def test_a_mean_over_several_draws_is_not_called_a_draw(tmp_path: Path):
    files = frozen("drawn, _, _ = net.draw(obs.repeat(50, 1))\naction = drawn.mean(0)")
    assert scan(str(write_files(tmp_path, files))).verdict.rule == "unresolved"


def test_a_setting_that_chooses_between_agents_does_not_decide_the_rule(tmp_path: Path):
    """The other agent cannot be read, so nothing says that the setting changes how actions are chosen."""
    acting = (
        "if args.algorithm == 'ppo':\n    action, _, _ = net.draw(obs)\nelse:\n    action = planner.act(obs)"
    )
    files = frozen(acting)
    option = "    parser.add_argument('--algorithm', default='ppo')\n    args = parser.parse_args()"
    files["train.py"] = files["train.py"].replace("    args = parser.parse_args()", option)
    files["evaluation.py"] = "from elsewhere import planner\n" + files["evaluation.py"]
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.rule, verdict.provenance) == ("sampled", "training-rollout")


def test_a_flag_at_the_call_is_a_statement_also_where_both_its_values_draw(tmp_path: Path):
    files = frozen("action, _, _ = net.choose(obs, eval_mode=True)")
    files["net.py"] += (
        "\n    def choose(self, obs, eval_mode=False):\n"
        "        action, logprob, entropy = self.draw(obs)\n"
        "        return (action.clamp(0) if eval_mode else action), logprob, entropy\n"
    )
    files["train.py"] = files["train.py"].replace("net.draw(obs)", "net.choose(obs)")
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.rule, verdict.provenance) == ("sampled", "explicit-call-site")
    assert verdict.levels["provenance"] == "likely"


def test_a_value_next_to_a_draw_in_one_result_does_not_hide_the_draw(tmp_path: Path):
    """What comes out of a list of results may be the value or the action; only the action was chosen."""
    files = frozen("found = list(net.several(obs))\naction = found[args.place]")
    files["net.py"] += (
        "\n    def several(self, obs):\n"
        "        action = self.dist(obs).sample()\n"
        "        return self.body(obs), action\n"
    )
    result = scan(str(write_files(tmp_path, files)))
    assert (result.verdict.rule, result.verdict.levels["rule"]) == ("sampled", "likely")
    (path,) = result.paths
    assert any("something else that a network computes" in doubt for doubt in path.doubts)


def test_a_network_that_answers_under_the_other_condition_is_not_a_side_result(tmp_path: Path):
    files = frozen("action = net.body(obs) if mystery(obs) else net.dist(obs).sample()")
    assert scan(str(write_files(tmp_path, files))).verdict.rule == "unresolved"


def test_one_readable_branch_of_an_unread_flag_does_not_decide(tmp_path: Path):
    acting = "outputs = library.forward(obs)\naction = outputs['actions']\n"
    acting += "if settings.eval_deterministic:\n    action = net.dist(obs).probs.argmax(-1)"
    files = frozen(acting)
    files["evaluation.py"] = "from elsewhere import library, settings\n" + files["evaluation.py"]
    assert scan(str(write_files(tmp_path, files))).verdict.rule == "unresolved"


@pytest.mark.parametrize(
    ("flag", "rule"),
    [("do_sample=False", "argmax"), ("deterministic=True", "argmax"), ("do_sample=True", "sampled")],
)
def test_a_flag_of_an_object_that_cannot_be_read_is_taken_at_its_word(tmp_path: Path, flag: str, rule: str):
    files = frozen(f"action = load('checkpoint').respond(obs, {flag})")
    files["evaluation.py"] = "from elsewhere import load\n" + files["evaluation.py"]
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.rule, verdict.provenance) == (rule, "explicit-call-site")
    assert verdict.levels["rule"] == verdict.levels["provenance"] == "likely"


AGENT_THAT_STEPS = """
from net import Net


class Player:
    def __init__(self):
        self.net = Net(64)

    def reset(self):
        self.memory = None

    def step(self, obs):
        action, _, _ = self.net.draw(obs)
        return action
"""


def test_an_agent_with_reset_and_step_is_not_an_environment(tmp_path: Path):
    """What its `step` gives back is an action, not an observation that a network answers."""
    files = frozen("action = player.step(obs)")
    files["player.py"] = AGENT_THAT_STEPS
    files["evaluation.py"] = "from player import Player\nplayer = Player()\n" + files["evaluation.py"]
    assert scan(str(write_files(tmp_path, files))).verdict.rule == "sampled"


def test_a_method_act_that_gives_something_back_is_not_a_step(tmp_path: Path):
    files = frozen("action, _, _ = net.draw(envs.act(obs))")
    assert {path.action for path in scan(str(write_files(tmp_path, files))).paths} == {"action"}


def test_a_distribution_that_draws_greedily_now_and_then_is_epsilon_greedy(tmp_path: Path):
    files = frozen("action = distrax.EpsilonGreedy(net.body(obs), args.eps).sample(seed=0)")
    files["evaluation.py"] = "import distrax\n" + files["evaluation.py"]
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.rule, verdict.provenance) == ("epsilon-greedy", "unresolved")


def test_a_random_action_next_to_something_unread_is_not_taken_for_a_baseline(tmp_path: Path):
    files = frozen("action = spare.sample() if mystery(obs) else library.respond(obs)")
    files["evaluation.py"] = (
        "from elsewhere import library, mystery\nfrom gym.spaces import Discrete\nspare = Discrete(15)\n"
    ) + files["evaluation.py"]
    (path,) = scan(str(write_files(tmp_path, files))).paths
    assert path.rule == "unresolved"


def test_a_unit_test_next_to_a_script_is_not_an_evaluation(tmp_path: Path):
    files = frozen("action, _, _ = net.draw(obs)")
    files["run_test.py"] = (
        "import unittest\nfrom net import Net\nfrom procgen import ProcgenEnv\n"
        "envs = ProcgenEnv(num_envs=1, env_name='heist')\nnet = Net(64)\nobs = envs.reset()\n"
        "envs.step(net.dist(obs).probs.argmax(-1))\n"
    )
    assert "run_test.py" not in {path.script for path in scan(str(write_files(tmp_path, files))).paths}


def test_a_split_that_a_factory_never_reads_does_not_tell_environments_apart(tmp_path: Path):
    files = {
        "net.py": MODEL,
        "make.py": "import gym\n\n\ndef make_env(name, mode='train'):\n    return gym.make(name)\n",
        "main.py": (
            "import torch\nfrom make import make_env\nfrom net import Net\n\nnet = Net(64)\n"
            "optimizer = torch.optim.Adam(net.parameters())\n"
            "train_env, test_env = make_env('Maze-v0'), make_env('Maze-v0', mode='test')\n"
            "obs = train_env.reset()\n"
            "for _ in range(1000):\n    action, logprob, _ = net.draw(obs)\n"
            "    obs, reward, _, _ = train_env.step(action)\n"
            "    (logprob * reward).backward()\n    optimizer.step()\n"
            "obs = test_env.reset()\n"
            "for _ in range(100):\n    action, _, _ = net.draw(obs)\n    obs, reward, _, _ = test_env.step(action)\n"
        ),
    }
    assert scan(str(write_files(tmp_path, files))).verdict.evaluates_heldout is not True


def test_the_mean_of_an_unread_distribution_is_likely_the_maximum(tmp_path: Path):
    files = frozen("dist = library.respond(obs)\naction = dist.mean()")
    files["evaluation.py"] = "from elsewhere import library\n" + files["evaluation.py"]
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.rule, verdict.levels["rule"]) == ("argmax", "likely")


def test_a_list_of_actions_that_became_an_array_keeps_them_through_its_methods(tmp_path: Path):
    acting = "actions = []\nfor one in obs:\n    drawn, _, _ = net.draw(one)\n    actions.append(drawn)\n"
    files = frozen(acting + "action = np.array(actions).transpose(1, 0, 2)")
    files["evaluation.py"] = "import numpy as np\n" + files["evaluation.py"]
    assert scan(str(write_files(tmp_path, files))).verdict.rule == "sampled"


def test_a_flax_module_is_called_by_apply(tmp_path: Path):
    files = frozen("action, _ = policy.apply(weights, obs, True, rngs={'noise': key})")
    files["policy.py"] = (
        "import distrax\nfrom flax import linen as nn\n\n\nclass Policy(nn.Module):\n"
        "    def __call__(self, obs, deterministic=False):\n"
        "        dist = distrax.Categorical(logits=nn.Dense(15)(obs))\n"
        "        if deterministic:\n            return dist.mode(), None\n"
        "        return dist.sample_and_log_prob(seed=self.make_rng('noise'))\n"
    )
    files["evaluation.py"] = (
        "from elsewhere import key, weights\nfrom policy import Policy\npolicy = Policy()\n"
        + files["evaluation.py"]
    )
    verdict = scan(str(write_files(tmp_path, files))).verdict
    assert (verdict.rule, verdict.provenance) == ("argmax", "explicit-call-site")


SHOWS = """
import gym, torch
from torch import nn

net = nn.Linear(4, 2)
env = gym.make("{name}")
obs, done = env.reset(), False
while not done:
    obs, reward, done, _ = env.step(net(torch.as_tensor(obs)).argmax().item())
    {keep}
"""
LEARNS = """
import gym, torch
from torch import nn

net = nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters())
env = gym.make("CartPole-v1")
obs = env.reset()
while True:
    dist = torch.distributions.Categorical(logits=net(torch.as_tensor(obs)))
    action = dist.sample()
    obs, reward, done, _ = env.step(action.item())
    (-dist.log_prob(action) * reward).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("keep", "level"), [("env.render()", "likely"), ("print(reward)", "proved")])
def test_a_script_that_keeps_no_return_is_never_proved_to_be_the_evaluation(
    tmp_path: Path, keep: str, level: str
):
    result = scanned(tmp_path, {"run.py": SHOWS.format(name="CartPole-v1", keep=keep)})
    assert (result.verdict.rule, levels_of(result)["rule"]) == ("argmax", level)


def test_environments_of_other_names_in_other_scripts_are_not_held_out_levels(tmp_path: Path):
    other = SHOWS.format(name="MountainCar-v0", keep="print(reward)")
    assert scanned(tmp_path, {"train.py": LEARNS, "other.py": other}).verdict.evaluates_heldout is None


def test_the_best_of_several_draws_is_a_draw(tmp_path: Path):
    files = frozen("drawn, _, _ = net.draw(obs.repeat(50, 1))\naction = drawn[net.body(obs).argmax()]")
    assert scanned(tmp_path, files).verdict.rule == "sampled"
