"""A package of somebody else adds an engine, a policy format and a rule; it is built, installed and used here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gapfloor import plugins  # noqa: F401
from source_tree import SOURCE

pytest.importorskip("gymnasium", reason='the plugin wraps an environment: pip install "gapfloor[gymnasium]"')

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "gapfloor-frozen"
version = "1.0"
[tool.setuptools]
py-modules = ["frozen_plugin"]
[project.entry-points."gapfloor.engines"]
frozen = "frozen_plugin"
broken = "no_such_module:engine"
hollow = "json"
[project.entry-points."gapfloor.policy_formats"]
npy = "frozen_plugin:load_table"
[project.entry-points."gapfloor.rules"]
second = "frozen_plugin:Second"
half = "frozen_plugin:Half"
greedy = "no_such_module:Other"
"""
MODULE = '''
"""FrozenLake by the name of its map, tables of logits, and the rule that takes the second best action."""

from dataclasses import dataclass, replace

import numpy as np

from gapfloor.engines.gymnasium import engine
from gapfloor.rules import Rule


def make_spec(game, *, mode, options):
    spec = engine.make_spec("FrozenLake-v1", mode=mode, options={"map_name": game, "is_slippery": False})
    return replace(spec, engine="frozen", game=game)


def _inner(spec):
    return replace(spec, engine="gymnasium", game="FrozenLake-v1")


def check_levels(spec, levels):
    engine.check_levels(_inner(spec), levels)


def engine_from_spec(spec, *, slots, levels, draw):
    return engine.engine_from_spec(_inner(spec), slots=slots, levels=levels, draw=draw)


def load_table(spec, *, device):
    table = np.load(spec.path, allow_pickle=False)
    return lambda observations: table[np.asarray(observations).reshape(len(observations), -1)[:, 0].astype(int)]


@dataclass(frozen=True)
class Second(Rule):
    form = "second"
    is_deterministic = True

    def choose(self, logits, uniforms, legal=None):
        return np.argsort(logits, axis=1, kind="stable")[:, -2]

    def choose_row(self, distribution, uniforms, space, legal=None):
        raise NotImplementedError

    def __str__(self):
        return "second"


class Half(Rule):
    form = "half"
'''


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "frozen_plugin.py").write_text(MODULE)
    command = [
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        str(target),
    ]
    subprocess.run([sys.executable, "-m", "pip", *command, str(source)], check=True, capture_output=True)
    return target


def _gapfloor(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(installed)])}
    return subprocess.run(
        [sys.executable, "-m", "gapfloor.cli.main", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_line_plays_with_engine_format_and_rule_of_a_plugin(
    installed: Path, tmp_path: Path
) -> None:
    # Down, then right: with the second best action this table walks right into the lake.
    np.save(tmp_path / "table.npy", np.tile([0.0, 2.0, 1.0, -1.0], (16, 1)))
    done = _gapfloor(
        installed, "evaluate", "npy:table.npy", "--game", "frozen:4x4", "--rules", "second,greedy", "--design",
        "census", "--train", "0:3", "--test", "10:13", "--agent", "table", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {row["rule"] for row in document["gaps"]} == {"second", "greedy"}
    assert {row["game"] for row in document["cells"]} == {"4x4"}
    manifest = json.loads(next((tmp_path / "gapfloor-store" / "cells").glob("*.json")).read_text())
    assert "frozen" in json.dumps(manifest)


def test_the_list_of_engines_names_those_of_plugins(installed: Path, tmp_path: Path) -> None:
    done = _gapfloor(installed, "doctor", "--json", cwd=tmp_path)
    assert "its games are written frozen:GAME" in done.stdout


@pytest.mark.parametrize(
    ("game", "words"),
    [
        ("broken:x", "The plugin 'broken' of gapfloor-frozen (gapfloor.engines) cannot be loaded"),
        ("hollow:x", "The plugin 'hollow' (gapfloor.engines) cannot be used: it has no function make_spec"),
    ],
)
def test_a_plugin_that_fails_gives_one_sentence(
    installed: Path, tmp_path: Path, game: str, words: str
) -> None:
    done = _gapfloor(installed, "floor", game, cwd=tmp_path)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_rule_that_lacks_a_method_is_refused(installed: Path, tmp_path: Path) -> None:
    done = _gapfloor(installed, "evaluate", "x", "--game", "maze", "--rules", "half", cwd=tmp_path)
    assert done.returncode == 2
    assert "'half' (gapfloor.rules) cannot be used: it does not define choose and choose_row" in " ".join(
        done.stderr.split()
    )


def test_a_plugin_never_replaces_a_name_of_ours(installed: Path) -> None:
    code = "from gapfloor.rules import rule_kind; print(rule_kind('greedy').__module__)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(installed)])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "gapfloor.rules.standard"
