"""CleanRL's agents built again: what their constructors ask of the environment is found in the weights.

A constructor asks for the spaces of the environments. The file does not record them, but the weights have to
fit, so likely spaces are tried until the agent that they make takes the weights.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from gapfloor.errors import GapfloorError, PolicyError, UsageError
from gapfloor.policies.formats.inference import missing_library
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import check_weights_fit
from gapfloor.users_code import in_users_words

#: Heights and widths of images in common use: ProcGen, Atari, and MiniGrid's views and pixels.
_IMAGE_SIZES = (64, 84, 7, 56, 96, 128)


def build_agent(cls: type, weights: Mapping[str, Any], spec: PolicySpec) -> Any:
    """An agent of the class with these weights."""
    required = [
        each
        for each in inspect.signature(cls).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if not required:
        return _construct(cls, (), weights, spec)
    refusal: GapfloorError | None = None
    for shape, n_actions in itertools.product(_shapes(weights, spec), _action_counts(weights, spec)):
        try:
            return _construct(cls, (_environments(shape, n_actions),), weights, spec)
        except PolicyError as error:
            refusal = refusal or error
    if spec.text("observation") is None and _reads_images(weights):
        raise UsageError(
            f"{spec.path} reads images, whose size its weights do not tell: add ,observation=HEIGHTxWIDTHxCHANNELS, "
            "e.g. ,observation=64x64x3, as the environment returns them."
        ) from refusal
    assert refusal is not None
    raise refusal


def _construct(cls: type, arguments: tuple[Any, ...], weights: Mapping[str, Any], spec: PolicySpec) -> Any:
    try:
        agent = cls(*arguments)
        check_weights_fit(agent.state_dict(), weights, name=str(spec.path), network=cls.__name__)
        agent.load_state_dict(weights)
    except PolicyError as error:
        raise PolicyError(f"{cls.__name__} does not take the weights of {spec.path}: {error}") from None
    except Exception as error:
        raise PolicyError(
            f"{cls.__name__} does not take the weights of {spec.path}: {in_users_words(error)}"
        ) from error
    return agent


def _environments(shape: tuple[int, ...], n_actions: int) -> Any:
    """What a constructor asks of the environments that the agent was trained in: their spaces."""
    try:
        from gymnasium import spaces
    except ImportError as error:
        raise missing_library(error) from None
    observation = spaces.Box(-np.inf, np.inf, shape, np.float32)
    actions = spaces.Discrete(n_actions)
    return SimpleNamespace(
        single_observation_space=observation,
        single_action_space=actions,
        observation_space=observation,
        action_space=actions,
    )


def _shapes(weights: Mapping[str, Any], spec: PolicySpec) -> Iterator[tuple[int, ...]]:
    text = spec.text("observation")
    if text is not None:
        if not re.fullmatch(r"[1-9]\d{0,5}(x[1-9]\d{0,5})*", text):
            raise UsageError(
                f"The option observation={text} is not a shape: write it as observation=64x64x3."
            )
        yield tuple(int(part) for part in text.split("x"))
        return
    if _reads_images(weights):
        channels = int(next(each for each in weights.values() if each.ndim == 4).shape[1])
        for size in _IMAGE_SIZES:
            yield (size, size, channels)
            yield (channels, size, size)
        return
    matrices = [each for each in weights.values() if each.ndim == 2]
    if not matrices:
        raise UsageError(
            f"{spec.path} does not tell the size of its observations: add ,observation=SIZE, e.g. ,observation=4."
        )
    yield (int(matrices[0].shape[1]),)


def _action_counts(weights: Mapping[str, Any], spec: PolicySpec) -> list[int]:
    given = spec.whole_number("actions")
    if given is not None:
        return [given]
    head = spec.text("head") or "actor"
    layers = [each for name, each in weights.items() if name.startswith(f"{head}.") and each.ndim == 2]
    if layers:
        return [int(layers[-1].shape[0])]
    # The head has another name: the last layers of the network are the likeliest to be it.
    counts = [int(each.shape[0]) for each in weights.values() if each.ndim == 2 and each.shape[0] > 1]
    if not counts:
        raise UsageError(f"{spec.path} does not tell how many actions there are: add ,actions=NUMBER.")
    return list(dict.fromkeys(reversed(counts)))


def _reads_images(weights: Mapping[str, Any]) -> bool:
    return any(each.ndim == 4 for each in weights.values())
