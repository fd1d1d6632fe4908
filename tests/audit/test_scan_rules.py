"""The scanner's rule and provenance, one small repository per pattern, with near misses."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import MODEL, evaluate, frozen, train

from gapfloor.audit.judgement.verdict import AuditVerdict
from gapfloor.audit.scan import ScanResult, scan

pytestmark = pytest.mark.fast


def scanned(folder: Path, files: dict[str, str]) -> ScanResult:
    return scan(str(write_files(folder, files)))


def line_of(files: dict[str, str], name: str, text: str) -> tuple[str, int]:
    numbers = [number for number, line in enumerate(files[name].splitlines(), start=1) if text in line]
    assert len(numbers) == 1, (name, text, numbers)
    return name, numbers[0]


def evidence(result: ScanResult) -> set[tuple[str, int]]:
    return {(mark.file, mark.line) for path in result.paths for mark in path.evidence}


@pytest.mark.parametrize(("literal", "rule"), [("False", "sampled"), ("True", "argmax")])
def test_a_literal_at_the_call_is_explicit(tmp_path: Path, literal: str, rule: str):
    files = frozen(f"action, _ = net.act(\n    obs,\n    deterministic={literal})")
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, rule, "explicit-call-site", False)
    assert line_of(files, "evaluation.py", "deterministic=") in evidence(result)


def test_a_positional_literal_is_explicit_too(tmp_path: Path):
    assert scanned(tmp_path, frozen("action, _ = net.act(obs, True)")).verdict == AuditVerdict(
        True, "argmax", "explicit-call-site", False
    )


def test_a_method_default_that_nobody_overrides_is_a_default_argument(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, "sampled", "default-argument", False)
    assert line_of(files, "net.py", "deterministic=False") in evidence(result)
    primitives = {
        mark.line for path in result.paths for mark in path.evidence if mark.what == "sampling primitive"
    }
    assert [files["net.py"].splitlines()[line - 1].strip() for line in primitives] == ["action = pi.sample()"]


def test_a_default_one_frame_up_is_a_default_argument(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=greedy)", parameters=", greedy=True")
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, "argmax", "default-argument", False)
    assert line_of(files, "evaluation.py", "def evaluate") in evidence(result)
    assert line_of(files, "evaluation.py", "deterministic=greedy") in evidence(result)


def test_call_sites_that_disagree_leave_the_rule_unresolved(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=greedy)", parameters=", greedy=False")
    files["train.py"] = train(
        imports="from evaluation import evaluate",
        evaluation="print(evaluate(args, net))\nprint(evaluate(args, net, greedy=True))",
    )
    result = scanned(tmp_path, files)
    assert (result.verdict.evaluates_heldout, result.verdict.rule) == (True, "unresolved")
    assert {path.rule for path in result.paths} == {"sampled", "argmax"}


def test_an_argparse_option_is_a_config_option_at_its_default(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=args.deterministic_eval)")
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, "sampled", "config-option", False)
    assert line_of(files, "train.py", "--deterministic_eval") in evidence(result)


def test_a_dataclass_option_is_read_from_the_script_that_parsed_it(tmp_path: Path):
    settings = "from dataclasses import dataclass\nimport tyro\n\n@dataclass\nclass Args:\n    num_levels: int = 200\n"
    script = train(imports="from evaluation import evaluate", evaluation="print(evaluate(args, net))")
    start, end = script.index("    parser ="), script.index("    envs =")
    script = script[:start] + "    args = tyro.cli(Args)\n" + script[end:]
    files = {
        "net.py": MODEL,
        "evaluation.py": evaluate("action, _ = net.act(obs, deterministic=args.greedy)"),
        "sampling.py": settings + "    greedy: bool = False\n" + script,
        "greedy.py": settings + "    greedy: bool = True\n" + script,
    }
    result = scanned(tmp_path, files)
    assert {(path.script, path.rule, path.provenance) for path in result.paths} == {
        ("sampling.py", "sampled", "config-option"),
        ("greedy.py", "argmax", "config-option"),
    }
    assert (result.verdict.rule, result.verdict.provenance) == ("unresolved", "unresolved")


def test_an_option_without_a_readable_default_leaves_the_rule_unresolved(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=args.deterministic_eval)")
    files["train.py"] = files["train.py"].replace("action='store_true'", "default=guess()")
    assert scanned(tmp_path, files).verdict.rule == "unresolved"


def test_epsilon_greedy_is_known_by_its_coin_and_its_option(tmp_path: Path):
    files = frozen(
        "if np.random.uniform() < args.eps:\n    action = envs.action_space.sample()\n"
        "else:\n    action = net.q(obs).argmax(1)"
    )
    result = scanned(tmp_path, files)
    assert {(path.rule, path.provenance) for path in result.paths} == {("epsilon-greedy", "config-option")}
    assert line_of(files, "train.py", "--eps") in evidence(result)


def test_a_primitive_in_the_evaluation_itself_is_explicit(tmp_path: Path):
    assert scanned(tmp_path, frozen("action = net.dist(obs).probs.argmax(-1)")).verdict == AuditVerdict(
        True, "argmax", "explicit-call-site", False
    )


def test_the_training_method_called_in_an_evaluation_is_inherited_from_training(tmp_path: Path):
    assert scanned(tmp_path, frozen("action, _, _ = net.draw(obs)")).verdict == AuditVerdict(
        True, "sampled", "training-rollout", False
    )


@pytest.mark.parametrize(
    "decoy",
    [
        "batch = replay_buffer.sample()",
        "level = level_sampler.sample()",
        "best = scores.argmax()",
        "warm = envs.action_space.sample()",
        "net.eval()",
    ],
)
def test_primitives_that_do_not_reach_the_environment_do_not_matter(tmp_path: Path, decoy: str):
    files = frozen(f"{decoy}\naction, _ = net.act(obs, deterministic=True)")
    assert scanned(tmp_path, files).verdict == AuditVerdict(True, "argmax", "explicit-call-site", False)


def test_the_gumbel_trick_samples_although_it_takes_a_maximum(tmp_path: Path):
    files = frozen("u = np.random.uniform(size=15)\naction = np.argmax(net.logits(obs) - np.log(-np.log(u)))")
    assert scanned(tmp_path, files).verdict.rule == "sampled"


def test_a_maximum_over_noisy_values_is_not_called_argmax(tmp_path: Path):
    files = frozen("values = net.q(obs) + np.random.randn(15)\naction = np.argmax(values)")
    assert scanned(tmp_path, files).verdict.rule == "unresolved"


def test_candidates_of_an_unknown_class_that_disagree_are_listed(tmp_path: Path):
    files = frozen("action = load_policy().choose(obs)")
    files["policies.py"] = (
        "class A:\n    def choose(self, obs):\n        return self.pi(obs).sample()\n\n"
        "class B:\n    def choose(self, obs):\n        return self.pi(obs).argmax(-1)\n"
    )
    result = scanned(tmp_path, files)
    assert result.verdict.rule == "unresolved"
    found = {text for path in result.paths for text in path.candidates}
    assert found == {"sampled at policies.py:3", "argmax at policies.py:7"}


def test_a_flag_that_is_accepted_and_never_forwarded_is_inert(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    files["saved.py"] = (
        "from evaluation import evaluate\nfrom net import Net\n\n"
        "def evaluate_file(args, path, deterministic=True):\n    return evaluate(args, Net(64))\n"
    )
    result = scanned(tmp_path, files)
    assert result.inert_flags == ("evaluate_file(deterministic) at saved.py:4",)
    path = next(path for path in result.paths if path.script == "saved.py")
    assert (path.rule, path.inert_flags) == ("sampled", result.inert_flags)


def test_a_flag_that_is_forwarded_is_not_inert(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=greedy)", parameters=", greedy=True")
    assert scanned(tmp_path, files).inert_flags == ()


def test_a_graph_built_in_a_constructor_is_followed_through_the_session(tmp_path: Path):
    policy = """
import tensorflow as tf

class Policy:
    def __init__(self, sess, obs):
        self.pd = make_pd(obs)
        a0 = self.pd.sample()
        neglogp = self.pd.neglogp(a0)

        def step(ob):
            a, n = sess.run([a0, neglogp], {obs: ob})
            return a, n

        self.step = step
"""
    files = frozen("action, _ = net.step(obs)", call="evaluate(args, Policy(None, None))")
    files["policy.py"] = policy
    files["train.py"] = files["train.py"].replace(
        "from net import Net", "from net import Net\nfrom policy import Policy"
    )
    result = scanned(tmp_path, files)
    assert {path.rule for path in result.paths} == {"sampled"}
    assert line_of(files, "policy.py", "a0 = self.pd.sample()") in evidence(result)


def test_a_method_of_the_wrong_shape_is_not_a_candidate(tmp_path: Path):
    files = frozen("action = load_policy().choose(obs)")
    files["policies.py"] = (
        "class A:\n    def choose(self, obs):\n        return self.pi(obs).sample()\n\n"
        "class B:\n    def choose(self, obs, state, mask):\n        return self.pi(obs).argmax(-1)\n"
    )
    assert scanned(tmp_path, files).verdict.rule == "sampled"


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ("net.act = lambda obs: (net.dist(obs).probs.argmax(-1), None)", "a method replaced on the object"),
        ("setattr(net, 'act', greedy_act)", "a method replaced by name"),
    ],
)
def test_a_method_replaced_from_outside_is_not_taken_for_what_the_class_says(
    tmp_path: Path, lines: str, where: str
):
    files = frozen("action, _ = net.act(obs)")
    files["train.py"] = train(
        imports="from evaluation import evaluate", setup=lines, evaluation="print(evaluate(args, net))"
    )
    assert scanned(tmp_path, files).verdict.rule == "unresolved", where


def test_an_option_that_the_code_overwrites_is_not_taken_at_its_default(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=args.deterministic_eval)")
    files["train.py"] = train(
        imports="from evaluation import evaluate",
        setup="args.deterministic_eval = True",
        evaluation="print(evaluate(args, net))",
    )
    assert scanned(tmp_path, files).verdict.rule in ("argmax", "unresolved")


def test_another_script_that_overwrites_the_option_does_not_matter(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=args.deterministic_eval)")
    files["plot.py"] = "def f(args):\n    args.deterministic_eval = True\n"
    assert scanned(tmp_path, files).verdict == AuditVerdict(True, "sampled", "config-option", False)


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ("choice = dict(deterministic=True)", ("argmax", "explicit-call-site")),
        ("choice = {}\n        choice['deterministic'] = True", ("argmax", "explicit-call-site")),
        (
            "choice = dict(deterministic=True)\n        choice.update(args.more)",
            ("argmax", "explicit-call-site"),
        ),
        ("choice = load(args)", ("unresolved", "unresolved")),
    ],
)
def test_keywords_from_a_mapping_are_read_or_left_open(
    tmp_path: Path, settings: str, verdict: tuple[str, str]
):
    files = frozen("PLACE\naction, _ = net.act(obs, **choice)")
    files["evaluation.py"] = files["evaluation.py"].replace("PLACE", settings)
    found = scanned(tmp_path, files).verdict
    assert (found.rule, found.provenance) in (verdict, ("unresolved", "unresolved"))


def test_keywords_fixed_by_partial_count(tmp_path: Path):
    files = frozen(
        "action, _ = choose(obs)",
        parameters=", choose=None",
        call="evaluate(args, net, partial(net.act, deterministic=True))",
    )
    files["train.py"] = "from functools import partial\n" + files["train.py"]
    assert scanned(tmp_path, files).verdict == AuditVerdict(True, "argmax", "explicit-call-site", False)


PICK_BY_MODE = MODEL + (
    "\n    def pick(self, obs):\n        pi = self.dist(obs)\n"
    "        return pi.sample() if self.training else pi.probs.argmax(-1)\n"
)


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        ("", AuditVerdict(True, "sampled", "default-argument", False)),
        ("net.eval()", AuditVerdict(True, "argmax", "explicit-call-site", False)),
        ("net.train(False)", AuditVerdict(True, "argmax", "explicit-call-site", False)),
        ("net.eval()\n    net.train()", AuditVerdict(True, "sampled", "explicit-call-site", False)),
    ],
)
def test_the_mode_of_a_network_is_followed(tmp_path: Path, before: str, verdict: AuditVerdict):
    files = frozen("action = net.pick(obs)") | {"net.py": PICK_BY_MODE}
    files["evaluation.py"] = files["evaluation.py"].replace(
        "    returns = []", f"    {before}\n    returns = []"
    )
    assert scanned(tmp_path, files).verdict == verdict


def test_a_mode_that_is_set_under_a_condition_is_not_decided(tmp_path: Path):
    files = frozen("action = net.pick(obs)") | {"net.py": PICK_BY_MODE}
    files["evaluation.py"] = files["evaluation.py"].replace(
        "    returns = []", "    if unknown(args):\n        net.eval()\n    returns = []"
    )
    assert scanned(tmp_path, files).verdict.rule == "unresolved"


def test_a_flag_that_a_method_can_change_is_not_decided(tmp_path: Path):
    files = frozen("action = net.pick(obs)")
    files["net.py"] = MODEL.replace(
        "        super().__init__()", "        super().__init__()\n        self.greedy = False"
    ) + (
        "\n    def be_greedy(self):\n        self.greedy = True\n"
        "\n    def pick(self, obs):\n        pi = self.dist(obs)\n"
        "        return pi.probs.argmax(-1) if self.greedy else pi.sample()\n"
    )
    assert scanned(tmp_path, files).verdict.rule == "unresolved"


def test_a_global_that_a_function_changes_is_not_decided(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=GREEDY)")
    constant = "\nGREEDY = False\n"
    switch = "\n\ndef switch():\n    global GREEDY\n    GREEDY = True\n"
    files["evaluation.py"] = constant + files["evaluation.py"]
    assert scanned(tmp_path / "fixed", files).verdict == AuditVerdict(True, "sampled", "config-option", False)
    files["evaluation.py"] += switch
    assert scanned(tmp_path / "changed", files).verdict.rule == "unresolved"


def test_a_subclass_that_overrides_the_method_decides(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    files["net.py"] = MODEL.replace("class Net(nn.Module)", "class Base(nn.Module)") + (
        "\n\nclass Net(Base):\n    def act(self, obs, deterministic=False):\n"
        "        return self.dist(obs).probs.argmax(-1), None\n"
    )
    assert scanned(tmp_path, files).verdict.rule == "argmax"


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("np.random.choice(15, p=net.probs(obs))", "sampled"),
        ("np.random.choice(15, 1, True, net.probs(obs))", "sampled"),
        ("torch.multinomial(net.probs(obs), 1)", "sampled"),
        ("torch.max(net.q(obs), 1)[1]", "argmax"),
        ("net.q(obs).max(1)[1].cpu().numpy()", "argmax"),
        ("np.clip(net.dist(obs).sample().numpy(), 0, 14)", "sampled"),
        ("int(np.argmax(net.q(obs)))", "argmax"),
        ("jax.random.categorical(key, net.logits(obs))", "sampled"),
        ("net.mystery(obs)", "unresolved"),
    ],
)
def test_primitives_of_several_libraries_are_known(tmp_path: Path, expression: str, rule: str):
    files = frozen(f"action = {expression}")
    files["evaluation.py"] = "import jax\nimport torch\n" + files["evaluation.py"]
    assert scanned(tmp_path, files).verdict.rule == rule


def test_a_condition_on_how_the_environment_is_made_does_not_decide_the_rule(tmp_path: Path):
    """Exploration draws from the environment's space; whether that environment films itself says nothing about it."""
    files = frozen(
        "if np.random.uniform() < epsilon:\n    action = envs.action_space.sample()\n"
        "else:\n    action = net.q(obs).argmax(1)",
        parameters=", epsilon=0.05, film=False",
    )
    maker = (
        "from gym.wrappers import RecordVideo\n\n\ndef make(film):\n"
        "    env = ProcgenEnv(num_envs=1, env_name='heist', num_levels=0)\n"
        "    if film:\n        env = RecordVideo(env)\n    return env\n"
    )
    text = files["evaluation.py"]
    start = text.index("    envs = ProcgenEnv")
    files["evaluation.py"] = (
        text[:start] + "    envs = make(film)\n" + text[text.index("\n", start) + 1 :] + "\n\n" + maker
    )
    result = scanned(tmp_path, files)
    assert {(path.rule, path.provenance) for path in result.paths} == {("epsilon-greedy", "default-argument")}
