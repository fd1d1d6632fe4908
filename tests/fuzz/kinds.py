"""Every kind of input: the file that is damaged, how, and the commands that are given it.

A command is a line as it is typed in the folder that `sound_folder` writes. Files of that folder whose names occur in
the line are there when it runs. A kind without a file has its command line damaged instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzz import damages
from fuzz.mutations import mutant

Damage = Callable[[bytes, int], bytes]


@dataclass(frozen=True)
class Kind:
    """One kind of input."""

    file: str
    """Pattern of its path below the folder; the first file that matches is damaged."""
    commands: tuple[str, ...]
    damage: Damage = mutant
    share: float = 1.0
    """How many cases of this kind are run, compared with others: less for slow commands."""


_PLAYED = "--rules greedy --draws 0 --episodes 1 --slots 1 --train none --workers 1 --budget 1 --seeds 1 -q --store out"
_TABLE = (
    "analyse {}", "power {}", "analyse {} --plan alone.toml", "compare {} --agents a,b",
    "plan lock alone.toml --store {}", "analyse {} --out out",
    "report {} --out out --formats md,csv,card",
)  # fmt: skip
_STORE = (
    "analyse store", "verify store --episodes 0 --whole-cells 0", "plan lock alone.toml --store store",
    "report store --out out --formats md,csv,card,methods,html", "study status study.toml --store store",
    "verify store --episodes 1 --allow fuzz.tiny:Vectors --policy onnx:net.onnx",
    "floor fuzz.tiny:Vectors --draws 0 --episodes 4 --slots 2 --workers 1 --store store -q",
)  # fmt: skip
_PLAN = (
    "plan check {0}", "plan lock {0} --store episodes.csv", "analyse episodes.csv --plan {0}",
    "power --delta 1 --sem 0.3 --runs 5 --family 2 --plan {0}",
)  # fmt: skip
_SCAN = ("audit scan repo", "audit scan repo --out out.sarif", 'audit scan repo --entry "python evaluate.py"')
_LABELS = " ".join(
    f"--label {each}" for each in ("game=coinrun", "rule=greedy", "level_set=test", "agent=a", "seed=1")
)


def _evaluate(policy: str) -> tuple[str, ...]:
    game = "Pictures" if "checkpoint" in policy else "Vectors"
    return (f"evaluate {policy} --game fuzz.tiny:{game} --agent x {_PLAYED}",)


def _policy(file: str, policy: str, damage: Damage = mutant) -> Kind:
    return Kind(file, _evaluate(policy), damage, 0.25)


def _table(name: str, share: float = 1.0, damage: Damage = mutant) -> Kind:
    return Kind(name, tuple(line.format(name) for line in _TABLE), damage, share)


def _store(pattern: str, damage: Damage = mutant) -> Kind:
    return Kind(f"store/{pattern}", _STORE, damage, 0.12)


#: Lines whose words are damaged: every command that does not work for seconds when it is given sound values.
LINES = (
    *(line.format("episodes.csv") for line in _TABLE), *_STORE, *_SCAN, *(line.format("plan.toml") for line in _PLAN),
    *_evaluate("onnx:net.onnx"), *_evaluate("sb3:ppo.zip,vecnormalize=stats.npz"), "known-floor starpilot --mode easy",
    "plan init new.toml", "audit ledger --registry --only greedy", "study status study.toml",
    "audit ledger --out page.md", "levels fuzz.tiny:Vectors --train 0:2 --test 5:7 --store out",
    "replay store --games x --level 3 --count 1",
    "plan lock plan.toml --addendum merged.toml --store store", "audit scan repo.git@HEAD",
    f"analyse monitor.csv {_LABELS}", "analyse matrices.npz --label rule=greedy --label level_set=test",
    "sweep onnx:net.onnx --game fuzz.tiny:Vectors --temperatures 0 --episodes 1 --draws 0 --store out --out out",
    "cka store --store out", "training-curve store/runs/coinrun-easy-impala-8M-s1 --draws 0 --episodes 1",
    "calibrate fuzz.tiny:Vectors --states 2 --horizon 1 --store out", "analyse means.csv --floor 3.1±0.2",
)  # fmt: skip

_NAMED = "--label level_set=test --label rule=greedy --label game=g --label agent=a"


def _dataset(file: str, share: float = 0.25) -> Kind:
    lines = ("analyse dataset", "report dataset --out out --formats md,csv", "compare dataset --agents mlp,x")
    return Kind(f"dataset/{file}", lines, damages.forge_table, share)


def _log(file: str, line: str) -> Kind:
    return Kind(file, (f"analyse {line}", f"analyse {line} --json"), share=7)


KINDS: dict[str, Kind] = {
    "inspect-archive": _log("inspect.eval", "inspect.eval"),
    "inspect-json": _log("inspect.json", "inspect.json"),
    "lerobot": _log("eval_info.json", "eval_info.json --label game=g --label agent=a"),
    "rliable": _log("scores.json", "scores.json --label level_set=test --label rule=greedy"),
    "columns": _log("columns.json", "columns.json"),
    "markdown": _log("table.md", "table.md"),
    "latex": _log("table.tex", "table.tex"),
    "monitor-folder": _log("logs/*/*/monitor.csv", f"logs {_NAMED}"),
    "arguments": Kind("", LINES, share=14),
    "csv": _table("episodes.csv", 0.5),
    "parquet": _table("episodes.parquet", 0.5, damages.forge_table),
    "json-lines": _table("episodes.jsonl", 0.3),
    "means": Kind("means.csv", ("analyse means.csv", "analyse means.csv --floor 3.1±0.2", "power means.csv")),
    "monitor": Kind("monitor.csv", (f"analyse monitor.csv {_LABELS}",)),
    "evaluations": Kind("evaluations.npz", (f"analyse evaluations.npz {_LABELS}",)),
    "matrices": Kind("matrices.npz", ("analyse matrices.npz --label rule=greedy --label level_set=test",)),
    "leakage": _store("leakage/coinrun.json"),
    "plan": Kind("alone.toml", tuple(line.format("alone.toml") for line in _PLAN), share=2),
    "lock": Kind("plan.lock", ("plan check plan.toml", "analyse episodes.csv --plan plan.toml"), share=2),
    "sealed-lock": Kind(
        "plan.lock",
        ("plan check plan.toml", "plan lock plan.toml --addendum merged.toml --store store"),
        damages.seal_lock,
        share=2,
    ),
    "addendum": Kind("merged.toml", ("plan lock plan.toml --addendum merged.toml --store store",), share=2),
    "study": Kind(
        "study.toml", ("study status study.toml", "study status study.toml --store store"), share=0.5
    ),
    "manifest": _store("cells/*.json"),
    "forged": _store("cells/*.json", damages.forge_manifest),
    "cell": _store("cells/*.parquet", damages.forge_table),
    "order": _store("order.json"),
    "verification": _store("results/verification.json"),
    "dataset-cells": _dataset("cells.parquet"),
    "dataset-episodes": _dataset("episodes.parquet"),
    "rows": _store("results/rows.json"),
    "cka": _store("results/cka/a.json"),
    "note": _store("log/tasks/a.running"),
    "times": _store("log/cells/*.jsonl"),
    "classes": _store("classes/starpilot-easy.json"),
    "replay": _store("replays/a.json"),
    "frames": _store("replays/a.npz"),
    "run": _store("runs/*/checkpoint.safetensors"),
    "training-log": _store("runs/*/log.parquet", damages.forge_table),
    "sb3": _policy("ppo.zip", "sb3:ppo.zip"),
    "bare": _policy("ppo.zip", "ppo.zip"),
    "dqn": _policy("dqn.zip", "sb3:dqn.zip"),
    "recurrent": _policy("recurrent.zip", "sb3:recurrent.zip"),
    "cleanrl": _policy("agent.pt", "cleanrl:agent.pt,agent=fuzz.tiny:Agent,observation=4,actions=3"),
    "statedict": _policy("weights.pt", "statedict:weights.pt,net=torch.nn:Linear,args=4,3"),
    "onnx": _policy("net.onnx", "onnx:net.onnx"),
    "stats-npz": _policy("stats.npz", "sb3:ppo.zip,vecnormalize=stats.npz"),
    "stats-json": _policy("stats.json", "sb3:ppo.zip,vecnormalize=stats.json"),
    "checkpoint": _policy("checkpoint.safetensors", "checkpoint.safetensors"),
    "sealed-checkpoint": _policy("checkpoint.safetensors", "checkpoint.safetensors", damages.seal_checkpoint),
    "source": Kind("repo/evaluate.py", _SCAN, share=2),
    "notebook": Kind("repo/evaluate.ipynb", ("audit scan repo", "audit scan repo/evaluate.ipynb"), share=2),
    "yaml": Kind("repo/ppo.yaml", _SCAN),
    "toml": Kind("repo/ppo.toml", _SCAN),
    "settings": Kind("repo/ppo.json", _SCAN),
    "git-object": Kind(
        "repo.git/objects/??/*", ("audit scan repo.git", "audit scan repo.git@HEAD"), share=0.2
    ),
    "git-config": Kind("repo.git/config", ("audit scan repo.git",), damages.change_config, share=0.2),
    "git-index": Kind("repo.git/index", ("audit scan repo.git",), share=0.2),
    "registry": Kind(
        "registry.json",
        ("audit ledger --registry --file registry.json", "audit ledger --file registry.json --repos repo"),
        share=2,
    ),
}
