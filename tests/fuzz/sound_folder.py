"""One folder with a sound file of every kind that people exchange, each small, for fuzzing to damage."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch
from onnx import TensorProto, helper, numpy_helper

import small_stores
from fuzz.tiny import N_ACTIONS, SHAPE, Agent, Vectors
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.dataset import write_dataset
from gapfloor.records.store import Store
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import write_checkpoint

ROOT = Path(__file__).parents[2]
OLD = ROOT / "tests" / "data" / "version-0.1"
REGISTRY = ROOT / "src" / "gapfloor" / "audit" / "data" / "registry.json"

#: Short files, written as they are.
TEXTS = {
    "table.md": "| game | agent | mean | std | n |\n|---|---|---|---|---|\n| heist | impala | 1.5 | 0.3 | 8 |\n",
    "table.tex": "game & agent & mean & std & n \\\\\nheist & impala & $1.5$ & 0.3 & 8 \\\\\n",
    "scores.json": json.dumps({"impala": [[1.0, 2.0], [3.0, 4.0]], "random": [[0.0, 1.0], [1.0, 0.5]]}),
    "columns.json": json.dumps({"game": {"0": "heist"}, "agent": {"0": "a"}, "mean": {"0": 1.5}, "n": {"0": 8}}),
    "eval_info.json": json.dumps(
        {"per_episode": [{"seed": at, "sum_reward": at / 4, "success": at > 2} for at in range(5)]}
    ),
    "logs/game=heist/seed=1/monitor.csv": '#{"env_id": "x"}\nr,l,t\n1.0,20,0.5\n3.0,30,0.9\n',
    "logs/game=heist/seed=2/monitor.csv": '#{"env_id": "x"}\nr,l,t\n2.0,20,0.5\n3.5,30,0.9\n',
    "means.csv": "game,agent,mean,std,n\nheist,impala,1.5,0.3,8\nheist,random,3.1,0.2,8\nmaze,impala,5.0,0.4,8\n",
    "means.json": json.dumps([{"game": "heist", "agent": "impala", "mean": 1.5, "std": 0.3, "n": 8}]),
    "monitor.csv": '#{"t_start": 1.0}\nr,l,t\n1.0,20,0.5\n3.0,30,0.9\n',
    "stats.json": json.dumps({"mean": [0.0] * 4, "var": [1.0] * 4, "epsilon": 1e-8, "clip": 10.0}),
    "cka.json": json.dumps({"game": "coinrun", "agent": "impala", "seed": 1, "as_computed": 0.5, "n": 64}),
    "repo/ppo.yaml": "eval:\n  deterministic: true\n  seeds: [1, 2]\nlevels: 200\n",
    "repo/ppo.toml": "levels = 200\n[eval]\ndeterministic = true\nseeds = [1, 2]\n",
    "repo/ppo.json": '{"eval": {"deterministic": true}, "levels": [0, 200]}',
}  # fmt: skip

#: A log of inspect_ai, as one document and as the two of an archive.
LOG_HEADER = {"eval": {"task": "t", "model": "m", "model_generate_config": {"temperature": 0.5}}, "plan": {}}
LOG_SAMPLES = [
    {"id": at // 2, "epoch": at % 2 + 1, "scores": {"match": {"value": "C" if at % 3 else "I"}}} for at in range(8)
]  # fmt: skip

#: The commands that make the store and the lock, in this order.
MAKING = (
    "evaluate onnx:net.onnx --game fuzz.tiny:Vectors --rules sampled,greedy --agent mlp --budget 8M --seeds 1 "
    "--draws 0 --episodes 4 --slots 2 --store store --workers 1 -q",
    "verify store --episodes 0 --whole-cells 0",
    "analyse store",
    "plan init plan.toml",
    "plan lock plan.toml --store store",
    "plan init merged.toml --addendum",
)


def write_texts_and_tables(folder: Path) -> None:
    """Write everything that no command makes and no network is needed for."""
    (folder / "repo").mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "inspect.json").write_text(json.dumps({**LOG_HEADER, "samples": LOG_SAMPLES}))
    with zipfile.ZipFile(folder / "inspect.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(LOG_HEADER))
        archive.writestr("summaries.json", json.dumps(LOG_SAMPLES))
    rows = small_stores.small_rows(episodes=2, games=("coinrun",), draws=(0,))
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, folder / "episodes.parquet")
    pyarrow.csv.write_csv(table, folder / "episodes.csv")
    (folder / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.savez(folder / "matrices.npz", impala=np.ones((2, 3)), fpn=np.zeros((2, 3)))
    np.savez(
        folder / "evaluations.npz",
        timesteps=np.arange(2),
        results=np.ones((2, 3)),
        ep_lengths=np.ones((2, 3)),
    )
    shutil.copy(ROOT / "src" / "gapfloor" / "plan" / "data" / "paper.toml", folder / "alone.toml")
    study = (ROOT / "studies" / "demo.toml").read_text().replace("../agents", str(ROOT / "agents"))
    (folder / "study.toml").write_text(study)
    registry = json.loads(REGISTRY.read_text())
    (folder / "registry.json").write_text(json.dumps({**registry, "entries": registry["entries"][:1]}))
    _write_repository(folder)


def _write_repository(folder: Path) -> None:
    """A scanned repository as a folder, with a notebook, and as a bare clone with one commit."""
    shutil.copy(OLD / "scanned-evaluate.txt", folder / "repo" / "evaluate.py")
    source = (folder / "repo" / "evaluate.py").read_text().splitlines(keepends=True)
    cells = [{"cell_type": "code", "source": source}, {"cell_type": "markdown", "source": "text"}]
    notebook = {"cells": cells, "nbformat": 4, "nbformat_minor": 5}
    (folder / "repo" / "evaluate.ipynb").write_text(json.dumps(notebook))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], cwd=folder / "repo", check=True)
    shutil.move(folder / "repo" / ".git", folder / "repo.git")


def write_policies(folder: Path) -> None:
    """Write a policy file of every kind."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3 import DQN, PPO

    torch.manual_seed(0)
    small: dict[str, Any] = {"policy_kwargs": {"net_arch": [4]}, "device": "cpu"}
    lstm: dict[str, Any] = {"policy_kwargs": {"net_arch": [4], "lstm_hidden_size": 4}, "device": "cpu"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PPO("MlpPolicy", Vectors(), **small).save(folder / "ppo.zip")
        DQN("MlpPolicy", Vectors(), buffer_size=10, **small).save(folder / "dqn.zip")
        RecurrentPPO("MlpLstmPolicy", Vectors(), **lstm).save(folder / "recurrent.zip")
        torch.save(Agent(None).state_dict(), folder / "agent.pt")
        torch.save({"epoch": 3, "state_dict": torch.nn.Linear(4, 3).state_dict()}, folder / "weights.pt")
    _write_onnx(folder / "net.onnx")
    np.savez(folder / "stats.npz", mean=np.zeros(4), var=np.ones(4), epsilon=1e-8, clip=10.0)
    header = {
        "game": "fuzz.tiny:Pictures", "mode": "default", "levels": "0:200", "encoder": "impala", "seed": 4,
        "steps": 4096, "observation_shape": list(SHAPE), "n_actions": N_ACTIONS,
    }  # fmt: skip
    agent = make_agent("impala", observation_shape=SHAPE, n_actions=N_ACTIONS, seed=4)
    write_checkpoint(folder / "checkpoint.safetensors", agent, header)


def _write_onnx(path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((4, 3), dtype=np.float32), "w")
    value = lambda name, width: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])  # noqa: E731
    bias = numpy_helper.from_array(np.ones(3, dtype=np.float32), "constant")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Constant", [], ["b"], value=bias),
        helper.make_node("Add", ["h", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", 4)], [value("y", 3)], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))


def write_store_files(folder: Path) -> None:
    """Add to the store what `evaluate` does not write: a run with its log, classes, CKA, frames and notes."""
    store = folder / "store"
    run = store / "runs" / "coinrun-easy-impala-8M-s1"
    for each in (
        run,
        store / "classes",
        store / "replays",
        store / "log" / "tasks",
        store / "results" / "cka",
        store / "leakage",
    ):
        each.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "checkpoint.safetensors", run)
    labels = {"game": "coinrun", "mode": "easy", "budget": "8M", "agent": "impala"}
    numbers: dict[str, list[Any]] = {
        "steps": [64, 128], "entropy_nats": [2.5, 2.0], "in_loop_return": [0.0, 1.0], "n_episodes": [1, 2],
    }  # fmt: skip
    pq.write_table(
        pa.table({**{name: [value] * 2 for name, value in labels.items()}, **numbers}), run / "log.parquet"
    )
    shutil.copy(OLD / "store" / "classes" / "starpilot-easy.json", store / "classes")
    shutil.copy(folder / "cka.json", store / "results" / "cka" / "a.json")
    leaked = small_stores.leaked_levels([5], train=LevelSet(0, 200), test=LevelSet(1000, 1100))
    (store / "leakage" / "coinrun.json").write_text(leaked.to_json())
    np.savez_compressed(store / "replays" / "a.npz", frames=np.zeros((3, 8, 8, 3), dtype="uint8"))
    facts = {
        **small_stores.LABELS, "level_seed": 3, "episode_return": 1.0, "length": 3, "n_frames": 3, "slot": 0,
        "index": 1, "levels": "0:200",
    }  # fmt: skip
    (store / "replays" / "a.json").write_text(json.dumps(facts))
    note = {
        "study": "mine 1", "task": "floor coinrun", "host": "there", "place": "x", "process": 1,
        "started": "1", "since": 1.0,
    }  # fmt: skip
    (store / "log" / "tasks" / "a.running").write_text(json.dumps(note))
    made = Store(store)
    made.write_order(games=["fuzz.tiny:Vectors"], agents=["mlp"])
    write_dataset(store, folder / "dataset")
