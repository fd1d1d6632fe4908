"""Small repositories with one difficulty each, and what a reader of their code says about them.

`truth` is (held out, rule, provenance, in-loop). A field that nobody could decide from the text is None: every firm
answer to it is wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from smallrepos import MODEL, evaluate, frozen, in_loop, train

Truth = tuple[bool | None, str | None, str | None, bool | None]


@dataclass(frozen=True)
class Difficulty:
    name: str
    files: dict[str, str]
    truth: Truth


def acting(
    name: str,
    action: str,
    rule: str | None,
    provenance: str | None,
    *,
    model: str = "",
    imports: str = "",
    more: dict[str, str] | None = None,
    call: str = "evaluate(args, net)",
    parameters: str = "",
) -> Difficulty:
    """An evaluation of frozen weights on the full distribution that acts in a difficult way."""
    files = frozen(action, call=call, parameters=parameters)
    files["net.py"] += model
    files["evaluation.py"] = imports + files["evaluation.py"]
    return Difficulty(name, files | (more or {}), (True, rule, provenance, False))


def levels(
    name: str, heldout: bool | None, *, test: str, start: str = "0", training: str = "args.num_levels"
):
    files = frozen("action, _ = net.act(obs, deterministic=True)")
    files["evaluation.py"] = evaluate(
        "action, _ = net.act(obs, deterministic=True)", levels=test, start=start
    )
    files["train.py"] = files["train.py"].replace("num_levels=args.num_levels", f"num_levels={training}")
    return Difficulty(name, files, (heldout, "argmax", "explicit-call-site", False))


def maze(name: str, heldout: bool | None, train_args: str, test_args: str) -> Difficulty:
    """An environment class of the repository, made with other arguments for training and for test."""
    files = frozen("action, _ = net.act(obs, deterministic=True)")
    files["maze.py"] = """
import gym


class Maze(gym.Env):
    def __init__(self, split='train', size=9, seed=0):
        self.split, self.size, self.seed_ = split, size, seed

    def reset(self):
        return load(self.split, self.size)

    def step(self, action):
        return move(action), 0.0, False, {}
"""
    files["evaluation.py"] = files["evaluation.py"].replace(
        "from procgen import ProcgenEnv", "from maze import Maze"
    )
    files["evaluation.py"] = files["evaluation.py"].replace(
        "ProcgenEnv(num_envs=1, env_name='heist', num_levels=0, start_level=0)", f"Maze({test_args})"
    )
    files["train.py"] = files["train.py"].replace("from procgen import ProcgenEnv", "from maze import Maze")
    files["train.py"] = files["train.py"].replace(
        "ProcgenEnv(num_envs=64, env_name='heist', num_levels=args.num_levels, start_level=0)",
        f"Maze({train_args})",
    )
    return Difficulty(name, files, (heldout, "argmax", "explicit-call-site", False))


_FLAGGED = """
class Flagged(Net):
    greedy = False

    def set_test(self, value):
        self.greedy = value

    def choose(self, obs):
        pi = self.dist(obs)
        if self.greedy:
            return pi.probs.argmax(-1)
        return pi.sample()

    def by_mode(self, obs):
        pi = self.dist(obs)
        return pi.sample() if self.training else pi.probs.argmax(-1)

    def run(self, obs, training=True):
        pi = self.dist(obs)
        return pi.sample() if training else pi.probs.argmax(-1)

    def cooled(self, obs, temperature=1.0):
        logits = self.body(obs)
        if temperature == 0:
            return logits.argmax(-1)
        return Categorical(logits=logits / temperature).sample()
"""


def flagged(name: str, setup: str, action: str, rule: str | None, provenance: str | None) -> Difficulty:
    case = acting(name, f"{setup}\n{action}".strip(), rule, provenance, model=_FLAGGED)
    files = dict(case.files)
    files["train.py"] = (
        files["train.py"]
        .replace("net = Net(64)", "net = Flagged(64)")
        .replace("from net import Net", "from net import Flagged")
    )
    return Difficulty(name, files, case.truth)


def _notebook(source: str) -> str:
    cell = {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": [], "metadata": {}}
    return json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


_RANDOM = "from numpy.random import randint\n"
_GREEDY = "best = net.body(obs).argmax(-1)\n"

SOUNDNESS = [
    acting(
        "a scaled argmax", "action = 2 * net.act(obs, deterministic=True)[0]", "argmax", "explicit-call-site"
    ),
    acting(
        "clip of something unknown",
        "action = np.clip(choose(obs), 0, 14)",
        None,
        None,
        imports="from x import choose\n",
    ),
    acting(
        "a product with something unknown",
        "action = 2.0 * choose(net, obs)",
        None,
        None,
        imports="from x import choose\n",
    ),
    acting(
        "a tanh mean without a distribution",
        "action = torch.tanh(net.body(obs))",
        "argmax",
        "explicit-call-site",
        imports="import torch\n",
    ),
    acting(
        "an item of a dictionary",
        "out = {}\nout['a'] = net.draw(obs)[0]\naction = out['a']",
        "sampled",
        "training-rollout",
    ),
    acting(
        "an item under a computed key",
        "out = {}\nfor key in names(obs):\n    out[key] = net.draw(obs)[0]\naction = out[0]",
        "sampled",
        "training-rollout",
    ),
    acting(
        "a list that grows",
        "action = []\nfor _ in range(1):\n    action.append(net.draw(obs)[0])",
        "sampled",
        "training-rollout",
    ),
    acting(
        "a namedtuple",
        "action = net.answer(obs).action",
        "sampled",
        "explicit-call-site",
        model="\nfrom collections import namedtuple\nAnswer = namedtuple('Answer', ['action', 'value'])\n\n"
        "def answer(self, obs):\n    return Answer(action=self.dist(obs).sample(), value=0)\n\nNet.answer = answer\n",
    ),
    acting(
        "code from a string", "scope = {}\nexec(args.code, scope)\naction = scope['choose'](obs)", None, None
    ),
    acting(
        "a string that spells zero",
        "action, _ = net.act(obs, deterministic=int(args.flag))",
        "sampled",
        "config-option",
    ),
    acting(
        "an unknown function may replace the action",
        "action = postprocess(net.draw(obs)[0])",
        None,
        None,
        imports="from x import postprocess\n",
    ),
]
_SQUASHED = """
class Squashed(Net):
    def to(self, device):
        return super().to(device)

    def sample(self, obs):
        mean = torch.tanh(self.body(obs))
        return Categorical(logits=mean).sample(), 0.0, mean
"""
SOUNDNESS += [
    acting(
        "the mean is the third of three results",
        "_, _, action = Squashed(64).to('cpu').sample(obs)",
        "argmax",
        "explicit-call-site",
        model=_SQUASHED,
        imports="from net import Squashed\n",
    ),
    acting(
        "a further result of an unknown object",
        "_, action = make_policy().sample(obs)",
        None,
        None,
        imports="from x import make_policy\n",
    ),
    Difficulty(
        "an evaluation written into the training loop",
        {
            "net.py": MODEL,
            "train.py": train(
                setup="memory = []",
                rollout="memory.append((obs, action, reward))",
                evaluation="if update % 10 == 0:\n    for _ in range(10):\n        state, over = envs.reset(), False\n"
                "        while not over:\n            best, _ = net.act(state, deterministic=True)\n"
                "            state, gain, over, _ = envs.step(best)",
            ),
        },
        (False, "argmax", "explicit-call-site", False),
    ),
]
_SAME_LEVELS = in_loop(test_levels="args.num_levels")
SOUNDNESS += [
    Difficulty(
        "a second environment on the training levels",
        _SAME_LEVELS,
        (False, "sampled", "training-rollout", True),
    ),
]
SOUNDNESS[9].files["train.py"] = (
    SOUNDNESS[9]
    .files["train.py"]
    .replace("    args = parser", "    parser.add_argument('--flag', default='0')\n    args = parser")
)

LEVELS = [
    levels("the same levels", False, test="200"),
    levels("a subset of the levels", False, test="50", start="10"),
    levels("other levels", True, test="100", start="1000"),
    levels("levels that overlap in part", None, test="100", start="150"),
    levels("a range after the full distribution", False, test="100", start="500", training="0"),
    levels("full after full", False, test="0", training="0"),
    levels("the full distribution", True, test="0"),
    levels("a count that nobody can read", None, test="read_count()", start="1000"),
    maze("a class with another split", True, "split='train'", "split='test'"),
    maze("a class with the same arguments", False, "split='train'", "split='train', seed=7"),
    maze("a class whose split is not known", None, "split='train'", "split=pick()"),
]

RANDOMNESS = [
    acting(
        "Gumbel noise",
        "noise = np.random.gumbel(size=15)\naction = (net.body(obs) + noise).argmax(-1)",
        "sampled",
        "explicit-call-site",
    ),
    acting(
        "the inverse of the cumulative distribution",
        "probs = net.dist(obs).probs\naction = (np.cumsum(probs) > np.random.rand()).argmax(-1)",
        "sampled",
        "explicit-call-site",
    ),
    acting(
        "multinomial",
        "action = torch.multinomial(net.dist(obs).probs, 1)",
        "sampled",
        "explicit-call-site",
        imports="import torch\n",
    ),
    acting(
        "a weighted choice",
        "action = np.random.choice(15, p=net.dist(obs).probs)",
        "sampled",
        "explicit-call-site",
    ),
    acting(
        "epsilon in a where",
        _GREEDY + "action = np.where(np.random.rand() < 0.05, randint(15), best)",
        "epsilon-greedy",
        "explicit-call-site",
        imports=_RANDOM,
    ),
    acting(
        "epsilon from an option",
        _GREEDY + "action = randint(15) if np.random.rand() < args.eps else best",
        "epsilon-greedy",
        "config-option",
        imports=_RANDOM,
    ),
    acting(
        "epsilon in a mask",
        _GREEDY + "mask = np.random.rand() < 0.05\naction = mask * randint(15) + (1 - mask) * best",
        "epsilon-greedy",
        "explicit-call-site",
        imports=_RANDOM,
    ),
    acting(
        "epsilon of zero",
        _GREEDY + "action = randint(15) if np.random.rand() < 0.0 else best",
        "argmax",
        "explicit-call-site",
        imports=_RANDOM,
    ),
    acting("added noise", _GREEDY + "action = best + np.random.normal(0, 0.1)", None, None),
    acting("the indices of topk", "action = net.body(obs).topk(1).indices", "argmax", "explicit-call-site"),
    acting("the second of max", "action = net.body(obs).max(-1)[1]", "argmax", "explicit-call-site"),
    acting(
        "the first of sort",
        "values, order = net.body(obs).sort(descending=True)\naction = order[0]",
        "argmax",
        "explicit-call-site",
    ),
    acting("the mode of a distribution", "action = net.dist(obs).mode", "argmax", "explicit-call-site"),
]

MODES = [
    flagged("eval mode decides", "net.eval()", "action = net.by_mode(obs)", "argmax", "explicit-call-site"),
    flagged(
        "train mode decides", "net.train()", "action = net.by_mode(obs)", "sampled", "explicit-call-site"
    ),
    flagged(
        "a flag that is set outside",
        "net.greedy = True",
        "action = net.choose(obs)",
        "argmax",
        "explicit-call-site",
    ),
    flagged("a setter", "net.set_test(True)", "action = net.choose(obs)", "argmax", "explicit-call-site"),
    flagged(
        "a keyword for training", "", "action = net.run(obs, training=False)", "argmax", "explicit-call-site"
    ),
    flagged(
        "temperature zero", "", "action = net.cooled(obs, temperature=0)", "argmax", "explicit-call-site"
    ),
    flagged("temperature one", "", "action = net.cooled(obs)", "sampled", "default-argument"),
    acting(
        "a partial",
        "act = partial(net.act, deterministic=True)\naction, _ = act(obs)",
        "argmax",
        "explicit-call-site",
        imports="from functools import partial\n",
    ),
    acting(
        "a lambda",
        "act = lambda o: net.act(o, deterministic=True)\naction, _ = act(obs)",
        "argmax",
        "explicit-call-site",
    ),
    acting(
        "keywords from two dictionaries",
        "base = {'deterministic': False}\nmore = {**base, 'deterministic': True}\naction, _ = net.act(obs, **more)",
        "argmax",
        "explicit-call-site",
    ),
    acting(
        "an environment variable",
        "action, _ = net.act(obs, deterministic=bool(os.environ.get('GREEDY', '')))",
        "sampled",
        "config-option",
        imports="import os\n",
    ),
]

_LOADED = "cfg = {loader}\naction, _ = net.act(obs, deterministic=cfg['evaluation']['greedy'])"
CONFIGURATION = [
    acting(
        "a YAML file",
        _LOADED.format(loader="yaml.safe_load(open('config.yaml'))"),
        "argmax",
        "config-option",
        imports="import yaml\n",
        more={"config.yaml": "evaluation:\n  greedy: true\n"},
    ),
    acting(
        "YAML files that disagree",
        _LOADED.format(loader="yaml.safe_load(open(args.config))"),
        None,
        None,
        imports="import yaml\n",
        more={"a.yaml": "evaluation:\n  greedy: true\n", "b.yaml": "evaluation:\n  greedy: false\n"},
    ),
    acting(
        "a class from a dictionary",
        "agent = AGENTS[args.agent](64)\naction, _ = agent.act(obs, deterministic=True)",
        "argmax",
        "explicit-call-site",
        imports="from net import Net\nAGENTS = {'ppo': Net}\n",
    ),
    acting(
        "a class from a decorator's registry",
        "agent = build('ppo')\naction = agent.choose(obs)",
        "argmax",
        "explicit-call-site",
        imports="from registry import build\nimport agents\n",
        more={
            "registry.py": "TABLE = {}\n\n\ndef register(name):\n    def keep(made):\n        TABLE[name] = made\n"
            "        return made\n    return keep\n\n\ndef build(name):\n    return TABLE[name]()\n",
            "agents.py": "from net import Net\nfrom registry import register\n\n\n@register('ppo')\nclass Ppo:\n"
            "    def __init__(self):\n        self.net = Net(64)\n\n    def choose(self, obs):\n"
            "        return self.net.body(obs).argmax(-1)\n",
        },
    ),
    Difficulty(
        "a notebook",
        {
            "net.py": MODEL,
            "train.py": train(),
            "evaluation.ipynb": _notebook(
                "import torch\nfrom procgen import ProcgenEnv\nfrom net import Net\nnet = Net(64)\n"
                "env = ProcgenEnv(num_envs=1, env_name='heist', num_levels=0, start_level=0)\nobs = env.reset()\n"
                "for _ in range(1000):\n    action, _ = net.act(obs, deterministic=True)\n"
                "    obs, reward, done, info = env.step(action)\n"
            ),
        },
        (True, "argmax", "explicit-call-site", False),
    ),
    Difficulty(
        "a notebook that cannot be read",
        {"net.py": MODEL, "train.py": train(), "evaluation.ipynb": '{"cells": [{"source": ["env.step(act)"'},
        (None, None, None, None),
    ),
]

_LOCAL = {
    "net.py": MODEL,
    "kit/__init__.py": "",
    "kit/torch/__init__.py": "",
    "kit/torch/distributions.py": "class Categorical:\n    def __init__(self, logits):\n"
    "        self.logits = logits\n\n"
    "    def sample(self):\n        return self.logits.argmax(-1)\n",
    "kit/evaluation.py": evaluate("action = Categorical(net.body(obs)).sample()").replace(
        "import numpy", "from kit.torch.distributions import Categorical\nimport numpy"
    ),
    "train.py": train(imports="from kit.evaluation import evaluate", evaluation="print(evaluate(args, net))"),
}
_TWO = {
    "one/net.py": MODEL,
    "one/evaluation.py": evaluate("action = net.pick(obs)"),
    "one/train.py": train(imports="from evaluation import evaluate", evaluation="print(evaluate(args, net))"),
    "two/net.py": MODEL + "\n    def pick(self, obs):\n        return self.dist(obs).sample()\n",
    "two/plot.py": "from net import Net\n\nprint(Net)\n",
}
_TWO["one/net.py"] += "\n    def pick(self, obs):\n        return self.body(obs).argmax(-1)\n"
_CYCLE = frozen("action, _ = net.act(obs, deterministic=True)") | {
    "other.py": "from net import Net\nimport evaluation\n"
}
_CYCLE["net.py"] = "import other\n" + _CYCLE["net.py"]
ROBUSTNESS = [
    Difficulty("a local package named like a library", _LOCAL, (True, "argmax", "explicit-call-site", False)),
    Difficulty(
        "two sub-projects with the same file names", _TWO, (True, "argmax", "explicit-call-site", False)
    ),
    Difficulty("modules that import each other", _CYCLE, (True, "argmax", "explicit-call-site", False)),
]

DIFFICULTIES = [*SOUNDNESS, *LEVELS, *RANDOMNESS, *MODES, *CONFIGURATION, *ROBUSTNESS]
