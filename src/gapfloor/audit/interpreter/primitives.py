"""The primitives that choose an action, and the calls through which an action passes unchanged."""

from __future__ import annotations

import ast
import re

from gapfloor.audit.reading.index import last_name, names_in

#: Methods that draw from a distribution, and names of receivers whose `sample` is something else.
DRAWS = frozenset({"sample", "rsample", "sample_n", "multinomial"})
MAXIMA = frozenset({"argmax", "mode"})
_NOT_A_POLICY = re.compile(
    r"buffer|memory|replay|sampler|storage|dataset|rollout|random$|^rng|_rng|prior|level|task|goal|noise|queue|loader",
    re.IGNORECASE,
)
_SPACE = re.compile(r"space$", re.IGNORECASE)
DISTRIBUTION = re.compile(
    r"categorical|normal|gaussian|distribution|bernoulli|multinomial|beta$|^pd|_pd|pd_|^pi$|^dist|_dist|^probs?$|^policy_dist|squashed|boltzmann",
    re.IGNORECASE,
)

#: External functions that draw in proportion to probabilities, take the maximum, or ignore the policy.
SAMPLING_FUNCTIONS = frozenset({"multinomial", "categorical", "choices"})
MAXIMUM_FUNCTIONS = frozenset({"argmax", "nanargmax"})
UNIFORM_FUNCTIONS = frozenset({"randint", "randrange", "random_integers", "integers", "choice"})

#: Functions that return values and their indices; the index of the first is the best action.
RANKINGS = frozenset({"max", "topk", "sort", "top_k"})

#: Methods that change an object's place or mode, not what it is.
SAME_OBJECT = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "eval",
        "train",
        "float",
        "half",
        "double",
        "share_memory",
        "requires_grad_",
        "module",
        "unwrap",
        "compile",
        "__enter__",
        "seed",
    ]
)
_NOISE = re.compile(r"gumbel|rand|uniform|normal$|noise|thompson", re.IGNORECASE)


def draw_of_receiver(receiver: ast.expr) -> str | None:
    """What `.sample()` on a receiver of unknown kind gives: random for a space, None for buffers and the like."""
    name = last_name(receiver)
    if _SPACE.search(name):
        return "random"
    if name and _NOT_A_POLICY.search(name):
        return None
    return "sampled"


def draw_of_function(name: str, call: ast.Call) -> str | None:
    """The rule of an external function called `name`: sampled, argmax, random, or None for others."""
    last = name.rsplit(".", 1)[-1]
    package = name.split(".", 1)[0]
    has_weights = any(keyword.arg in ("p", "weights") for keyword in call.keywords) or (
        len(call.args) > (1 if last == "choices" else 3)
    )
    if last in SAMPLING_FUNCTIONS and package not in ("random", "numpy"):
        return "sampled" if last != "choices" else None
    if last in ("choice", "choices") and package in ("numpy", "random", "np", "jax"):
        return "sampled" if has_weights else "random"
    if last == "multinomial":
        return "sampled"
    if last in MAXIMUM_FUNCTIONS:
        return "argmax"
    if last in UNIFORM_FUNCTIONS and ("random" in name or "torch" in name):
        return "random"
    return None


def draw_of_generator(receiver: str, name: str, call: ast.Call) -> str | None:
    """The rule of a draw by a random generator: `rng.choice(n, p=probs)` samples, without weights it is uniform."""
    if name not in UNIFORM_FUNCTIONS or not re.search(
        r"random|rng|generator|default_rng", receiver, re.IGNORECASE
    ):
        return None
    has_weights = any(keyword.arg in ("p", "weights") for keyword in call.keywords) or len(call.args) > 3
    return "sampled" if name == "choice" and has_weights else "random"


def noise_in(expression: ast.AST, scope: ast.AST) -> str | None:
    """Whether what is maximised carries noise: sampled for the Gumbel trick, noisy for other draws, else None."""
    names = names_in(expression)
    assigned = [node for node in ast.walk(scope) if isinstance(node, ast.Assign)]
    for _ in range(3):
        for node in assigned:
            if any(isinstance(target, ast.Name) and target.id in names for target in node.targets):
                names |= names_in(node.value)
    drawn = {name for name in names if _NOISE.search(name)}
    if not drawn:
        return None
    if {"cumsum", "cumprod", "searchsorted"} & names:
        return "sampled"  # the inverse of the cumulative distribution
    logs = sum(isinstance(node, ast.Call) and last_name(node) == "log" for node in ast.walk(expression))
    return "sampled" if logs >= 2 or any("gumbel" in name.lower() for name in drawn) else "noisy"


def is_random_test(test: ast.AST) -> bool:
    """Whether a condition compares a random draw, as exploration by epsilon does."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            dotted = ast.unparse(node.func)
            if re.search(r"(random|uniform|rand|rng)", dotted.lower()) and "space" not in dotted:
                return True
    return False
