"""tools/public_agents.py: what is missing, what differs, and agents that gapfloor plays with the same logits."""

import hashlib
import io
import shlex
import subprocess
import tomllib

import numpy as np
import pytest
import torch

import public_agents
from command_line import parse
from gapfloor.training.checkpoint import load_agent, read_checkpoint

STUDY = """
[evaluation]
rules = ["sampled", "greedy"]
draws = [20, 21]
episodes = 32
slots = 16
burn_in = 1
probe = 64
backend = "onnxruntime"
references = ["uniform", "best-constant"]

[[sources]]
repository = "https://example.org/agents"
commit = "{commit}"
train = "0:200"
test = "1000:1100"
encoder = "impala"
weights = [
    {{ game = "heist", agent = "baseline", seed = 3, budget = "25M", steps=9, path = "a/model.pth", sha256 = "{sha}" }}
]
"""


@pytest.fixture
def weights():
    """A file as train-procgen-pytorch writes it."""
    generator = torch.Generator().manual_seed(0)

    def made(*shape):
        return torch.randn(shape, generator=generator) * 0.05

    tensors = {}
    for block, (a, b) in enumerate([(3, 16), (16, 32), (32, 32)], start=1):
        for name, shape in [("conv", (b, a)), *((f"res{i}.conv{j}", (b, b)) for i in (1, 2) for j in (1, 2))]:
            tensors[f"embedder.block{block}.{name}.weight"] = made(*shape, 3, 3)
            tensors[f"embedder.block{block}.{name}.bias"] = made(shape[0])
    for name, shape in [("embedder.fc", (256, 2048)), ("fc_policy", (15, 256)), ("fc_value", (1, 256))]:
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = made(*shape), made(shape[0])
    content = io.BytesIO()
    torch.save({"state_dict": tensors}, content)
    return content.getvalue(), tensors


def logits_by_hand(tensors, images):
    x = torch.tensor(images).permute(0, 3, 1, 2) / 255
    conv = torch.nn.functional.conv2d
    for block in (1, 2, 3):

        def layer(x, name, block=block):
            key = f"embedder.block{block}.{name}"
            return conv(x, tensors[f"{key}.weight"], tensors[f"{key}.bias"], padding=1)

        x = torch.nn.functional.max_pool2d(layer(x, "conv"), 3, 2, 1)
        for i in (1, 2):
            x = x + layer(layer(x.relu(), f"res{i}.conv1").relu(), f"res{i}.conv2")
    x = (x.relu().flatten(1) @ tensors["embedder.fc.weight"].T + tensors["embedder.fc.bias"]).relu()
    return x @ tensors["fc_policy.weight"].T + tensors["fc_policy.bias"]


def run(folder, study, *places):
    (folder / "study.toml").write_text(study)
    with pytest.raises(SystemExit) as ended:
        public_agents.main(
            [*map(str, places), "--out", str(folder / "out"), "--study", str(folder / "study.toml")]
        )
    return ended.value.code


def test_an_agent_of_a_folder_or_a_bare_clone_is_played_with_its_own_logits(tmp_path, weights, capsys):
    content, tensors = weights
    folder = tmp_path / "clone"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "model.pth").write_bytes(content)

    def git(*arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "weights")
    commit = git("rev-parse", "HEAD")
    (folder / "a" / "model.pth").unlink()

    assert run(tmp_path, STUDY.format(commit=commit, sha=hashlib.sha256(content).hexdigest()), folder) == 0
    out = capsys.readouterr().out
    written = tmp_path / "out" / "heist-baseline-25M-s3" / "checkpoint.safetensors"
    assert f"evaluate {written} --game heist --agent baseline --budget 25M --seeds 3 --train 0:200" in out
    assert "--draws 20,21 --episodes 32 --slots 16 --probe 64 --backend onnxruntime" in out
    parse(shlex.split(out.splitlines()[-1])[1:])  # the command line understands it

    images = np.random.default_rng(0).integers(0, 256, (16, 64, 64, 3), dtype=np.uint8)
    with torch.no_grad():
        logits, _ = load_agent(read_checkpoint(written))(torch.tensor(images))
    np.testing.assert_allclose(logits, logits_by_hand(tensors, images), atol=1e-5)


def test_a_file_that_is_missing_or_differs_is_named_and_not_played(tmp_path, weights, capsys):
    content, _ = weights
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    study = STUDY.format(commit="0" * 40, sha=hashlib.sha256(content).hexdigest())
    assert run(tmp_path, study, folder) == 1
    said = capsys.readouterr()
    assert "1 of 1 files are missing, e.g. a/model.pth: clone https://example.org/agents" in said.err
    assert said.out == ""

    (folder / "a" / "model.pth").write_bytes(content + b"x")
    assert run(tmp_path, study, folder) == 1
    assert "a/model.pth has the sha256" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_study_file_names_each_agent_once():
    study = tomllib.loads((public_agents.ROOT / "studies" / "public.toml").read_text())
    weights = [each for source in study["sources"] for each in source["weights"]]
    assert len(weights) == len({each["sha256"] for each in weights}) == 151
    assert len({(w["game"], w["agent"], w["budget"], w["seed"]) for w in weights}) == 151
