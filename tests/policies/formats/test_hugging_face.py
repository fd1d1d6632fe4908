"""Policies on the Hugging Face Hub, through its real cache in offline mode."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gapfloor.errors import GapfloorError
from gapfloor.policies.load import PolicySource
from policies.formats.bombs import bomb_in_every_pickle, rewrite

pytest.importorskip("huggingface_hub")
stable_baselines3 = pytest.importorskip("stable_baselines3")

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A cache as the Hub's library leaves it, with an SB3 model and what often lies next to one."""
    cache = tmp_path_factory.mktemp("hub")
    repository = cache / "models--someone--ppo-CartPole-v1"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    model = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", seed=1, device="cpu")
    blob = repository / "blobs" / "model"
    blob.parent.mkdir()
    model.save(blob.with_suffix(".zip"))
    (snapshot / "ppo-CartPole-v1.zip").symlink_to(blob.with_suffix(".zip"))
    (snapshot / "README.md").write_text("A model.")
    return cache


def offline(hub: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "HF_HUB_CACHE": str(hub),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
    }
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


LINE = (
    "from gapfloor.policies.load import PolicySource; spec = PolicySource({!r}).fetched().spec;"
    "print(spec.kind, spec.path.name, spec.path.parent.name, dict(spec.options))"
)


@pytest.mark.parametrize(
    "line",
    [
        "hf:someone/ppo-CartPole-v1",
        "hf:someone/ppo-CartPole-v1/ppo-CartPole-v1.zip",
        f"hf:someone/ppo-CartPole-v1@{COMMIT}/ppo-CartPole-v1.zip",
    ],
)
def test_a_name_on_the_hub_becomes_the_file_in_the_cache(hub, line):
    done = offline(hub, "-c", LINE.format(f"{line},framestack=2"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=3) == ["sb3", "ppo-CartPole-v1.zip", COMMIT, "{'framestack': '2'}\n"]


def test_the_name_of_a_file_on_the_hub_is_never_read_as_options(hub, tmp_path):
    """One repository, two files: a model that runs code when unpickled, and a file whose name asks for trust."""
    marker = tmp_path / "it-ran"
    snapshot = hub / "models--evil--ppo" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (hub / "models--evil--ppo" / "refs").mkdir()
    (hub / "models--evil--ppo" / "refs" / "main").write_text(COMMIT)
    model = hub / "models--someone--ppo-CartPole-v1" / "blobs" / "model.zip"
    rewrite(model, snapshot / "model", data=bomb_in_every_pickle(model, marker))
    shutil.copy(snapshot / "model", snapshot / "model,trust=yes,key=a.zip")
    done = offline(
        hub, "-m", "gapfloor.cli.main", "evaluate", "hf:evil/ppo", "--game", "gym:CartPole-v1", "--rules", "greedy",
        "--draws", "0", "--episodes", "4", "--slots", "4", "--train", "0:4", "--test", "10:14", "--workers", "1",
        "--store", str(tmp_path / "store"),
    )  # fmt: skip
    assert not marker.exists(), done.stdout + done.stderr
    assert done.returncode in (0, 2), done.stderr


def test_an_option_that_the_format_of_a_file_does_not_have_is_refused(hub):
    done = offline(hub, "-c", LINE.format("hf:someone/ppo-CartPole-v1,scale=255"))
    assert "option of sb3:" in done.stderr


def test_a_model_of_the_hub_is_evaluated_by_its_name(hub, tmp_path):
    done = offline(
        hub, "-m", "gapfloor.cli.main", "evaluate", "hf:someone/ppo-CartPole-v1", "--game", "gym:CartPole-v1",
        "--rules", "greedy", "--draws", "0", "--episodes", "4", "--slots", "4", "--train", "0:4", "--test", "10:14",
        "--workers", "1", "--store", str(tmp_path / "store"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "greedy" in done.stdout


def test_what_is_not_in_the_cache_is_one_sentence(hub):
    done = offline(
        hub,
        "-m",
        "gapfloor.cli.main",
        "evaluate",
        "hf:someone/other",
        "--game",
        "gym:CartPole-v1",
        "--rules",
        "greedy",
    )
    assert done.returncode == 2
    assert "cannot be fetched from the Hugging Face Hub" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", ["hf:", "hf:name", "hf:a/b@", "hf:a b/c"])
def test_a_line_that_names_nothing_is_refused(line):
    with pytest.raises(GapfloorError, match="write hf:OWNER/NAME"):
        PolicySource(line).fetched()
