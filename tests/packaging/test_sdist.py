"""The source distribution contains every file of the repository that the tests, the documentation or the demo need."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_tracked_file_is_in_the_source_distribution(tmp_path):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is not a clone of the repository")
    tools, copy, built = tmp_path / "tools", tmp_path / "copy", tmp_path / "built"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--target",
        str(tools),
        "-c",
        "constraints.txt",
    ]
    subprocess.run([*install, "setuptools"], cwd=ROOT, check=True, capture_output=True)
    # A copy without history: the distribution must not depend on what git would list.
    tracked = set(listed.stdout.splitlines())
    for name in tracked:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    code = f"import setuptools.build_meta as build; build.build_sdist({str(built)!r})"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=copy,
        env={"PYTHONPATH": str(tools)},
        check=True,
        capture_output=True,
    )
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked - held == {".gitignore"}
