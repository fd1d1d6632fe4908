"""The source distribution has every file of the repository; the wheel has its data and licences."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from source_tree import ROOT

#: Files of the repository that nobody needs outside it.
NOT_DISTRIBUTED = {".gitignore"}


def _tracked() -> list[str]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a clone: there is no list of the repository's files")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    ).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel of a copy of the repository."""
    copy = tmp_path_factory.mktemp("copy") / "gapfloor"
    for name in _tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    code = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return copy / "dist"


def test_the_source_distribution_has_every_file(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.split("/", 1)[1] for name in files.getnames() if "/" in name}
    assert sorted(set(_tracked()) - names - NOT_DISTRIBUTED) == []


def test_the_wheel_has_the_package_with_its_data_and_licences(built: Path) -> None:
    (archive,) = built.glob("*.whl")
    with zipfile.ZipFile(archive) as files:
        names = set(files.namelist())
    wanted = {name.removeprefix("src/") for name in _tracked() if name.startswith("src/gapfloor/")}
    assert sorted(wanted - names) == []
    assert "gapfloor/data/README.md" in names
    assert [name for name in names if name.endswith("licenses/LICENSE")] != []
    assert [name for name in names if not name.startswith(("gapfloor/", "gapfloor-"))] == []


@pytest.mark.fast
def test_every_data_file_is_named_where_licences_are_stated() -> None:
    text = (ROOT / "src" / "gapfloor" / "data" / "README.md").read_text(encoding="utf-8")
    folders = [ROOT / "src" / "gapfloor" / "data", ROOT / "src" / "gapfloor" / "audit" / "data"]
    names = [
        path.name for folder in folders for path in folder.rglob("*") if path.suffix in {".json", ".csv"}
    ]
    assert len(names) >= 5
    assert "MIT licence" in text
    assert [name for name in names if name not in text] == []
    assert "licence" in (ROOT / "agents" / "README.md").read_text(encoding="utf-8")
