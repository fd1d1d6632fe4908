"""The agents of studies/public.toml as files that gapfloor plays.

    python tools/public_agents.py CLONE... --out agents-public > play.sh

Each CLONE is a clone of one of the repositories, with or without a work tree, or a folder that holds the files under
the same paths. The script says which files it does not find, compares the sha256 of each one that it finds, and writes
gapfloor checkpoints below `--out`: tensors are renamed and nothing else is changed. Files are read as tensors only
(`weights_only`), nothing in them is executed and nothing is downloaded. It prints the commands that play the agents
(run them in the folder `tools`, where the network of the third repository is found).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from gapfloor.training.checkpoint import write_weights

ROOT = Path(__file__).parent.parent

#: How the tensors of the impala encoder are called: here, in train-procgen-pytorch and in CleanRL.
_NAMES = (
    (r"embedder\.block([123])\.conv\.", lambda m: f"encoder.blocks.{int(m[1]) - 1}.conv."),
    (
        r"embedder\.block([123])\.res([12])\.conv([12])\.",
        lambda m: f"encoder.blocks.{int(m[1]) - 1}.residual{int(m[2]) - 1}.conv{int(m[3]) - 1}.",
    ),
    (r"network\.([012])\.conv\.", r"encoder.blocks.\1.conv."),
    (r"network\.([012])\.res_block([01])\.conv([01])\.", r"encoder.blocks.\1.residual\2.conv\3."),
    (r"(embedder\.fc|network\.5)\.", "encoder.projection."),
    (r"(fc_policy|actor)\.", "policy."),
    (r"(fc_value|critic)\.", "value."),
)


class StackedImpala(nn.Module):
    """The network of edomerli/procgen-PPO: IMPALA on four frames, with pooling that does not pad."""

    def __init__(self) -> None:
        super().__init__()
        widths = [12, 16, 32, 32]
        pairs = list(itertools.pairwise(widths))
        self.stems = nn.ModuleList([nn.Sequential(nn.Conv2d(a, b, 3, padding=1)) for a, b in pairs])
        self.res_blocks1 = nn.ModuleList([_residual(b) for _, b in pairs])
        self.res_blocks2 = nn.ModuleList([_residual(b) for _, b in pairs])
        self.fc = nn.Linear(32 * 7 * 7, 256)
        self.out = nn.Linear(256, 15)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Logits of stacked frames `[N, 4, 64, 64, 3]`, the oldest first."""
        x = frames.permute(0, 1, 4, 2, 3).flatten(1, 2) / 255
        for stem, first, second in zip(self.stems, self.res_blocks1, self.res_blocks2, strict=True):
            x = nn.functional.max_pool2d(stem(x), 3, 2)
            x = x + first(x)
            x = x + second(x)
        logits: torch.Tensor = self.out(self.fc(x.relu().flatten(1)).relu())
        return logits


class _Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        return y


def _residual(width: int) -> nn.Sequential:
    return nn.Sequential(_Layer(width), _Layer(width))


def rename(name: str) -> str:
    """What a tensor of either repository is called in a gapfloor checkpoint.

    >>> rename("embedder.block3.res1.conv2.bias")
    'encoder.blocks.2.residual0.conv1.bias'
    """
    for pattern, replacement in _NAMES:
        new, count = re.subn(rf"^{pattern}", replacement, name)
        if count:
            return new
    raise ValueError(f"The tensor {name} is unknown: this is not one of the agents of studies/public.toml.")


def find(places: Sequence[Path], commit: str, path: str) -> bytes | None:
    """The bytes of a file: from a folder, or from that commit of a clone; None where no place has it."""
    for place in places:
        if (place / path).is_file():
            return (place / path).read_bytes()
        # Only objects that the clone holds are read: GIT_NO_LAZY_FETCH keeps a partial clone from downloading more.
        answer = subprocess.run(
            ["git", "-C", str(place), "cat-file", "blob", f"{commit}:{path}"],
            capture_output=True, check=False, env={**os.environ, "GIT_NO_LAZY_FETCH": "1"},
        )  # fmt: skip
        if answer.returncode == 0:
            return answer.stdout
    return None


def write_agent(content: bytes, weights: Mapping[str, Any], source: Mapping[str, Any], out: Path) -> Path:
    """Write one agent below `out`; the file that gapfloor loads."""
    tensors = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    tensors = tensors.get("state_dict", tensors)
    target = out / "{game}-{agent}-{budget}-s{seed}".format(**weights) / "checkpoint.safetensors"
    target.parent.mkdir(parents=True, exist_ok=True)
    if "encoder" not in source:
        target = target.with_name("weights.safetensors")
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, target)
        return target
    header = {
        "game": weights["game"], "mode": "easy", "levels": source["train"], "encoder": source["encoder"],
        "seed": weights["seed"], "steps": weights["steps"], "budget": weights["budget"],
        "observation_shape": [64, 64, 3], "n_actions": 15, "hyperparameters": {}, "versions": {},
        "source": f"{source['repository']} {source['commit']} {weights['path']}", "source_sha256": weights["sha256"],
    }  # fmt: skip
    write_weights(target, {rename(name): tensor.contiguous() for name, tensor in tensors.items()}, header)
    return target


def commands(study: Mapping[str, Any], written: Mapping[str, Path]) -> Iterator[str]:
    """One `gapfloor evaluate` for each game, agent and budget whose files are all there."""
    how = study["evaluation"]
    shared = ["--rules", ",".join(how["rules"]), "--draws", ",".join(map(str, how["draws"]))]
    for name in (
        "episodes",
        "slots",
        "probe",
        "backend",
    ):  # one burn-in episode per slot is what the command plays
        shared += [f"--{name}", str(how[name])]
    for source in study["sources"]:
        groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
        for each in source["weights"]:
            groups.setdefault((each["game"], each["agent"], each["budget"]), []).append(each)
        for (game, agent, budget), runs in groups.items():
            if not all(run["sha256"] in written for run in runs):
                continue
            line = ["gapfloor", "evaluate"]
            for run in runs:
                file = str(written[run["sha256"]].resolve())
                stacked = f"statedict:{file},net=public_agents:StackedImpala,gymstack=4"
                line.append(file if "encoder" in source else stacked)
            seeds = ",".join(str(run["seed"]) for run in runs)
            line += ["--game", game, "--agent", agent, "--budget", budget, "--seeds", seeds]
            line += ["--train", source["train"], "--test", source["test"], *shared]
            for reference in how["references"][1:]:
                line += ["--reference", reference]
            for option, value in source.get("options", {}).items():
                line += ["--option", f"{option}={str(value).lower()}"]
            yield shlex.join(line)


def main(arguments: Sequence[str] | None = None) -> None:
    """Check and write what is found; exit 1 where a file is missing or differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("places", nargs="+", type=Path, metavar="CLONE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--study", type=Path, default=ROOT / "studies" / "public.toml")
    chosen = parser.parse_args(arguments)
    study = tomllib.loads(chosen.study.read_text(encoding="utf-8"))
    written: dict[str, Path] = {}
    problems = 0
    for source in study["sources"]:
        missing = []
        for weights in source["weights"]:
            content = find(chosen.places, source["commit"], weights["path"])
            if content is None:
                missing.append(weights["path"])
            elif (seen := hashlib.sha256(content).hexdigest()) != weights["sha256"]:
                problems += 1
                sys.stderr.write(
                    f"{weights['path']} has the sha256 {seen}, not {weights['sha256']}: not used.\n"
                )
            else:
                written[weights["sha256"]] = write_agent(content, weights, source, chosen.out)
        if missing:
            problems += len(missing)
            sys.stderr.write(
                f"{len(missing)} of {len(source['weights'])} files are missing, e.g. {missing[0]}: clone "
                f"{source['repository']} (commit {source['commit']}) and name the clone.\n"
            )
    sys.stderr.write(f"{len(written)} agents checked and written to {chosen.out}.\n")
    for line in commands(study, written):
        sys.stdout.write(f"{line}\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
