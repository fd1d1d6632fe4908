"""Hostile input neither crashes the scanner, nor runs, nor leads it outside the given path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from gitrepos import commit_files, git, write_files
from smallrepos import frozen

from gapfloor.audit.judgement.verdict import AuditVerdict
from gapfloor.audit.reading import git as git_reading
from gapfloor.audit.reading.sources import LARGEST_FILE, read_target
from gapfloor.audit.scan import scan
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast

GOOD = frozen("action, _ = net.act(obs, deterministic=True)")
NO_VERDICT = AuditVerdict(None, "unresolved", "unresolved", None)
VERDICT = AuditVerdict(True, "argmax", "explicit-call-site", False)

DEEP = {
    "parentheses": "(" * 50_000,
    "operators": "-" * 200_000 + "1",
    "attributes": "a" + ".b" * 200_000,
    "sums": "1" + "+1" * 200_000,
    "calls": "f" + "()" * 100_000,
    "lambdas": "lambda: " * 50_000 + "1",
    "conditions": "x if y else " * 50_000 + "1",
    "indents": "".join(" " * depth + "if x:\n" for depth in range(1000)),
    "alternatives": "if x:\n pass\n" + "elif y:\n pass\n" * 20_000,
    "brackets": "[" * 300 + "]" * 300,
    "generics": "a" + "[0]" * 100_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_reported_and_the_rest_still_read(tmp_path: Path, name: str):
    result = scan(str(write_files(tmp_path, GOOD | {"deep.py": DEEP[name]})))
    assert result.verdict == VERDICT
    assert [item.file for item in result.unread] == ["deep.py"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x7fELF\x00\x01", "binary"),
        (b"x = 1\n" * (LARGEST_FILE // 6 + 1), "larger than"),
        (b"# \xff\xfe\nx = 1\n", "not valid utf-8"),
        (b"# -*- coding: no-such-codec -*-\nx = 1\n", "encoding 'no-such-codec'"),
        (b"# -*- coding: punycode -*-\nx = 1\n", "encoding 'punycode'"),
        (b"# -*- coding: utf-16 -*-\nx = 1\n", "encoding 'utf-16'"),
        (b"print 'hello'\n", "Python 2"),
        (b"def broken(:\n", "syntax error at line 1"),
    ],
)
def test_unreadable_files_are_listed_with_a_reason(tmp_path: Path, data: bytes, reason: str):
    write_files(tmp_path, GOOD)
    (tmp_path / "odd.py").write_bytes(data)
    result = scan(str(tmp_path))
    # A file that nothing imports does not change what the others say.
    assert result.verdict == VERDICT
    assert [(item.file, reason in item.reason) for item in result.unread] == [("odd.py", True)]


def test_other_encodings_are_read_as_declared(tmp_path: Path):
    text = "# -*- coding: latin-1 -*-\n" + GOOD["evaluation.py"] + "# \xe9\n"
    write_files(tmp_path, GOOD)
    (tmp_path / "evaluation.py").write_bytes(text.encode("latin-1"))
    (tmp_path / "net.py").write_bytes(b"\xef\xbb\xbf" + GOOD["net.py"].encode())
    result = scan(str(tmp_path))
    assert (result.verdict, result.unread) == (VERDICT, ())


def test_links_are_not_followed_out_of_the_tree(tmp_path: Path):
    outside = write_files(tmp_path / "outside", {"secret.py": "SECRET = 1\n"})
    inside = write_files(tmp_path / "inside", GOOD)
    (inside / "file.py").symlink_to(outside / "secret.py")
    (inside / "folder").symlink_to(outside, target_is_directory=True)
    (inside / "loop").symlink_to(inside, target_is_directory=True)
    (inside / "dangling.py").symlink_to(tmp_path / "nowhere")
    sources = read_target(str(inside))
    assert {file.path for file in sources.files} == set(GOOD)
    assert {item.file for item in sources.unread} == {"file.py", "folder", "loop", "dangling.py"}
    assert {item.reason for item in sources.unread} == {"symbolic link, not followed"}


def test_a_virtual_environment_of_any_name_is_listed_and_left_out(tmp_path: Path):
    write_files(tmp_path, {"own.py": "x = 1\n", "env/pyvenv.cfg": "", "env/lib/theirs.py": "x = 2\n"})
    result = scan(str(tmp_path))
    assert [(item.file, item.reason) for item in result.unread] == [("env", "virtual environment")]


def test_a_link_in_a_commit_is_not_followed(tmp_path: Path):
    write_files(tmp_path, {"secret.py": "SECRET = 1\n"})
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "link.py").symlink_to("../secret.py")
    commit = commit_files(repo, GOOD)
    sources = read_target(f"{repo}@{commit}")
    assert {file.path for file in sources.files} == set(GOOD)
    assert [item.file for item in sources.unread] == ["link.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_named_like_a_source_does_not_block(tmp_path: Path):
    write_files(tmp_path, GOOD)
    os.mkfifo(tmp_path / "pipe.py")
    result = scan(str(tmp_path))
    assert [(item.file, item.reason) for item in result.unread] == [("pipe.py", "not a regular file")]


def test_nothing_that_is_scanned_is_run_or_imported(tmp_path: Path):
    mark = tmp_path / "ran"
    trap = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
    files = GOOD | {"conftest.py": trap, "sitecustomize.py": trap, "setup.py": trap, "__init__.py": trap}
    before = set(sys.modules)
    scan(str(write_files(tmp_path / "repo", files)))
    assert not mark.exists()
    assert not {name for name in set(sys.modules) - before if name in ("net", "train", "evaluation")}


def test_a_repositorys_own_git_configuration_runs_nothing(tmp_path: Path):
    repo = tmp_path / "repo"
    repo.mkdir()
    commit = commit_files(repo, GOOD | {".gitattributes": "*.py diff=evil filter=evil\n"})
    mark = tmp_path / "ran"
    for key in (
        "core.fsmonitor",
        "diff.evil.textconv",
        "filter.evil.smudge",
        "core.sshCommand",
        "core.pager",
    ):
        git(repo, "config", key, f"touch {mark}")
    git(repo, "config", "remote.origin.url", f"ext::sh -c touch% {mark}")
    git(repo, "config", "remote.origin.promisor", "true")
    git(repo, "config", "extensions.partialClone", "origin")
    blob = git(repo, "rev-parse", "HEAD:net.py")
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    result = scan(f"{repo}@{commit}")
    assert not mark.exists()
    assert [(item.file, item.reason) for item in result.unread] == [
        ("net.py", "this clone does not hold the file")
    ]


def test_a_pipe_in_the_place_of_a_file_of_git_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    repo = tmp_path / "repo"
    repo.mkdir()
    commit = commit_files(repo, GOOD)
    (repo / ".git" / "config").unlink()
    os.mkfifo(repo / ".git" / "config")
    monkeypatch.setattr(git_reading, "MOST_SECONDS", 1)
    with pytest.raises(UsageError, match="git did not answer within 1 seconds"):
        scan(f"{repo}@{commit}")


def test_cycles_of_calls_imports_and_bases_end(tmp_path: Path):
    files = {
        "a.py": "from b import f\nimport b\nclass A(b.B):\n    pass\n\ndef g(env):\n    f(env)\n    env.step(h(env))\n",
        "b.py": "from a import g, A\nclass B(A):\n    pass\n\ndef f(env):\n    g(env)\n",
        "c.py": "x = y\ny = x\nz = z\nenv.step(x)\nclass C(C):\n    pass\nC().act(C())\n",
        "d.py": "def h(env):\n    while True:\n        a = b\n        b = a\n        env.step(a)\n        h(env)\n",
    }
    result = scan(str(write_files(tmp_path, files)))
    assert result.verdict.rule == "unresolved"


def test_many_branches_and_callers_stay_within_the_budget(tmp_path: Path):
    functions = ["def f0(env, a):\n    env.step(a)\n"]
    functions += [
        f"def f{n}(env, a):\n    if env:\n        a = a.x if a else a.y\n    f{n - 1}(env, a)\n    f{n - 1}(env, a.b)\n"
        for n in range(1, 40)
    ]
    main = "if __name__ == '__main__':\n    f39(make(), policy())\n"
    result = scan(str(write_files(tmp_path, {"wide.py": "\n".join(functions) + main})))
    assert result.verdict.rule == "unresolved"
    assert result.verdict.evaluates_heldout is None


@pytest.mark.parametrize("target", ["{0}/none", "{0}@main", "{0}/none@main", "@x", "{0}@"])
def test_a_target_that_is_not_there_is_one_sentence(tmp_path: Path, target: str):
    with pytest.raises(UsageError):
        scan(target.format(tmp_path))


def test_an_unknown_commit_is_one_sentence(tmp_path: Path):
    commit_files(tmp_path, GOOD)
    with pytest.raises(UsageError, match="Commit 'nope' is not in"):
        scan(f"{tmp_path}@nope")
    with pytest.raises(UsageError, match="is not a revision"):
        scan(f"{tmp_path}@--output=x")


def test_settings_that_a_reset_takes_as_they_were_spread_do_not_loop(tmp_path: Path):
    text = (
        "import gym\n\n\ndef play(**settings):\n    env = gym.make('Maze-v0')\n    obs = env.reset(settings)\n"
        "    env.step(obs.argmax())\n\n\nif __name__ == '__main__':\n    play(level=3)\n"
    )
    (tmp_path / "play.py").write_text(text)
    assert scan(str(tmp_path)).paths is not None
