"""What a Stable-Baselines3 zip says in plain text, read without unpickling anything.

The zip's `data` is JSON. Where a value is not JSON, SB3 stores a pickle together with the value's attributes
as text: an observation space's shape and type, the module of the policy class, the name of an activation. For
the library's own policy classes that is enough to build the same network again, and the weights come from
`policy.pth` through torch's `weights_only` reader, which builds tensors and nothing else. A policy that this text does
not describe is refused: a function of the user's own can load it.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.input_files import read_policy_file
from gapfloor.policies.formats.archive import DamagedArchiveError, read_archive
from gapfloor.policies.formats.spec import NEEDS_FUNCTION
from gapfloor.policies.formats.torch_file import check_tensors, is_state_dict, load_torch_file

#: Numbers in the largest observation that is taken for one; a damaged shape could ask for all memory.
MOST_OBSERVATION_NUMBERS = 1 << 24

#: Where the library's own policy classes live, and what the harness calls an agent of such a class.
_FAMILIES: Mapping[str, str] = {
    "stable_baselines3.common.policies": "sb3",
    "sb3_contrib.common.recurrent.policies": "recurrent",
    "sb3_contrib.common.maskable.policies": "maskable",
    "stable_baselines3.sac.policies": "sac",
    "sb3_contrib.tqc.policies": "tqc",
    "stable_baselines3.td3.policies": "td3",
    "stable_baselines3.dqn.policies": "dqn",
}

#: The names of these classes: what they read, and which network they are.
_POLICY_NAME = re.compile(r"(MultiInput)?(?:Recurrent|Maskable)?(?:ActorCritic|SAC|TQC|TD3|DQN)?(Cnn)?Policy")


def agent_name(policy_class: tuple[str, str]) -> str | None:
    """What an agent of one of the library's own policy classes is called; None for any other class.

    >>> agent_name(("stable_baselines3.common.policies", "ActorCriticCnnPolicy"))
    'sb3-cnn'
    """
    family, found = _FAMILIES.get(policy_class[0]), _POLICY_NAME.fullmatch(policy_class[1])
    if family is None or found is None or policy_class[1] == "Policy":
        return None
    return f"{family}-{'multi' if found[1] else 'cnn' if found[2] else 'mlp'}"


#: Keyword arguments of a policy that do not change its logits.
_IGNORED = ("optimizer_class", "optimizer_kwargs", "ortho_init", "log_std_init", "lr_schedule", "device")

#: Keyword arguments that are plain values wherever the library's own classes are used.
_PLAIN = (
    "net_arch", "features_extractor_kwargs", "share_features_extractor", "normalize_images", "lstm_hidden_size",
    "n_lstm_layers", "shared_lstm", "enable_critic_lstm", "lstm_kwargs", "use_sde", "n_critics", "use_expln",
    "n_quantiles",    "full_std", "clip_mean", "squash_output",
)  # fmt: skip

#: Keyword arguments that are classes, and the library's module that has them.
_CLASSES = {
    "activation_fn": "torch.nn.modules.activation",
    "features_extractor_class": "stable_baselines3.common.torch_layers",
}

_CLASS = re.compile(r"^<class '([\w.]+)\.(\w+)'>$")
_BOX = re.compile(r"(.*), \((\d[\d, ]*)\), (\w+)", re.DOTALL)
_ENTRY = re.compile(r"'([^']+)': (Box|Discrete|MultiDiscrete|MultiBinary)\((.*?)\)(?=, '|\}$)", re.DOTALL)


@dataclass(frozen=True)
class SavedModel:
    """A zip's JSON and the file of its weights."""

    path: Path
    data: Mapping[str, Any]
    weights_file: bytes
    extractor: Any = None
    """The user's own features extractor, if the line names one."""

    @functools.cached_property
    def weights(self) -> Mapping[str, Any]:
        """The weights as tensors of torch."""
        name = f"policy.pth in {self.path}"
        weights: Mapping[str, Any] = load_torch_file(self.weights_file, name=name)
        if not is_state_dict(weights):
            raise PolicyError(f"{name} is not a state_dict: save the model again with model.save().")
        check_tensors(weights, name=name, file_bytes=len(self.weights_file))
        return weights

    @property
    def policy_class(self) -> tuple[str, str]:
        """Module and name of the policy's class; an empty name if the text does not tell."""
        described = self.data.get("policy_class", {})
        if not isinstance(described, dict):
            return "", ""
        found = re.match(r"^<function (\w+)\.__init__ at", str(described.get("__init__", "")))
        return str(described.get("__module__", "")), found.group(1) if found else ""

    def keywords(self) -> dict[str, Any]:
        """The policy's keyword arguments, from plain text alone."""
        keywords: dict[str, Any] = {}
        described = self.data.get("policy_kwargs") or {}
        if not isinstance(described, dict):
            raise self.damaged(f"policy_kwargs is a {type(described).__name__}")
        for name, value in described.items():
            if name in (":type:", ":serialized:", *_IGNORED):
                continue
            if name == "features_extractor_class" and self.extractor is not None:
                keywords[name] = self.extractor
            elif name in _CLASSES:
                keywords[name] = self._class(name, value, _CLASSES[name])
            elif name in _PLAIN and not isinstance(value, str):
                keywords[name] = value
            else:
                raise self.needs_function(f"was made with {name}={value}, which only its pickle holds")
        if self.data.get("use_sde") is True:  # PPO and A2C give it to their policy themselves
            keywords["use_sde"] = True
        # More layers or critics than there are tensors are refused: making them takes time even without memory.
        layers = keywords.get("net_arch")
        lists = layers.values() if isinstance(layers, dict) else [layers]
        counts: list[Any] = [len(each) for each in lists if isinstance(each, list)]
        counts += [keywords.get(name) for name in ("n_critics", "n_lstm_layers")]
        for count in counts:
            if count is not None and (type(count) is not int or count > len(self.weights)):
                raise self.damaged(
                    f"it asks for {str(count)[:40]} layers or critics, with {len(self.weights)} tensors"
                )
        return keywords

    def _class(self, name: str, text: Any, module: str) -> Any:
        found = _CLASS.match(str(text))
        if found is None or found.group(1) != module:
            option = ", if it is your own: add ,extractor=MODULE:CLASS" if "extractor" in name else ""
            why = f"was made with {name}={text}, which is not one of the library's own"
            raise self.needs_function(f"{why}{option}")
        cls = getattr(importlib.import_module(module), found.group(2), None)
        if not isinstance(cls, type):
            raise self.damaged(f"{name} is {text}, which does not exist")
        return cls

    def space(self, name: str) -> Any:
        """The space `observation_space` or `action_space`, from plain text alone."""
        from gymnasium import spaces

        described = self.data[name]
        try:
            if _type_name(described) != "Dict":
                return self._space(_type_name(described), described, is_exact=name == "action_space")
            text = str(described.get("spaces", ""))
            found = _ENTRY.findall(text)
            entries = {key: self._space(kind, _fields_of_text(kind, each)) for key, kind, each in found}
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            raise self.damaged(f"its {name} cannot be read") from None
        if not entries or len(entries) != text.count("': "):
            raise self.needs_function("describes its dict of observations in a form that cannot be read back")
        return spaces.Dict(entries)

    def _space(self, kind: str, described: Mapping[str, Any], *, is_exact: bool = False) -> Any:
        """A space of a kind. Bounds of actions scale those of SAC and TD3, others only tell whether it is an image."""
        import numpy as np
        from gymnasium import spaces

        if kind == "Discrete":
            return spaces.Discrete(self._count(described["n"]))
        if kind == "MultiDiscrete":
            return spaces.MultiDiscrete([self._count(n) for n in _numbers(described["nvec"])])
        if kind == "MultiBinary":
            shape = self._shape([int(n) for n in _numbers(described["_shape"])])
            # As a number where there is one: the library's networks take no other actions.
            return spaces.MultiBinary(self._count(shape[0]) if len(shape) == 1 else shape)
        if kind != "Box":
            raise self.needs_function(f"has a {kind} space, which only its pickle describes")
        shape = self._shape(described.get("_shape", described.get("shape")))
        low, high = _numbers(described["low"]), _numbers(described["high"])
        if is_exact:
            if not {len(low), len(high)} <= {1, math.prod(shape)}:
                raise ValueError("bounds")
            # Saved as the text of 32-bit numbers: reading them as such gives the same ones back.
            bounds = (np.resize(np.array(each, dtype=np.float32), shape) for each in (low, high))
            return spaces.Box(*bounds, dtype=np.float32)
        if described["dtype"] == "uint8" and len(shape) == 3 and (set(low), set(high)) == ({0}, {255}):
            return spaces.Box(0, 255, tuple(shape), np.uint8)
        return spaces.Box(-np.inf, np.inf, tuple(shape), np.float32)

    def _count(self, value: Any) -> int:
        n = int(value)
        if not 1 <= n <= MOST_OBSERVATION_NUMBERS:
            raise self.damaged(f"the size of one of its spaces is {n}")
        return n

    def _shape(self, shape: Any) -> list[int]:
        if not isinstance(shape, (list, tuple)) or not all(type(n) is int and n >= 0 for n in shape):
            raise self.damaged(f"the shape of its observations is {str(shape)[:60]}")
        if math.prod(shape) > MOST_OBSERVATION_NUMBERS or len(shape) > 16:
            raise self.damaged(f"its observations would have the shape {str(shape)[:60]}")
        return list(shape)

    def needs_function(self, why: str) -> PolicyError:
        """The refusal of a sound file that cannot be rebuilt from what it says in plain text."""
        return PolicyError(f"{self.path} {why}: {NEEDS_FUNCTION}.")

    def damaged(self, what: str) -> PolicyError:
        """The refusal of a description that the library never writes."""
        return PolicyError(
            f"The description in {self.path} is damaged ({what}): save the model again with model.save()."
        )


def _fields_of_text(kind: str, text: str) -> dict[str, Any]:
    """What stands between the brackets of a space's text, under the names that the JSON of a space has."""
    boxed = _BOX.fullmatch(text) if kind == "Box" else None
    if boxed:
        bounds, shape, dtype = boxed.groups()
        # Bounds that are the same everywhere, e.g. those of an image, are written as two numbers.
        low, high = bounds.split(", ") if bounds.count(", ") == 1 else ("", "")
        sizes = [int(n) for n in shape.split(",") if n.strip()]
        return {"low": low, "high": high, "_shape": sizes, "dtype": dtype}
    first = text.partition(",")[0]
    return {"n": first, "nvec": text, "_shape": text}


def read_zip(path: Path) -> SavedModel:
    """What a zip holds."""
    content = read_policy_file(path)
    try:
        entries = read_archive(content, name=str(path))
        data = json.loads(entries["data"])
        weights_file = entries["policy.pth"]
        if not isinstance(data, dict) or not {"action_space", "observation_space"} <= set(data):
            raise ValueError("no description of a model")
    except (DamagedArchiveError, KeyError, ValueError, RecursionError):
        raise PolicyError(
            f"{path} is not a zip that Stable-Baselines3's model.save() wrote, or it is damaged: save or copy it again."
        ) from None
    return SavedModel(path, data, weights_file)


def _type_name(described: Any) -> str:
    found = _CLASS.match(str(described.get(":type:", ""))) if isinstance(described, dict) else None
    return found.group(2) if found else type(described).__name__


def _numbers(text: Any) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", str(text))]
