"""A tiny study with the real engine, trainer and report: interrupted or not, the same bytes."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from command_line import GAPFLOOR
from folders import file_hashes

STUDY = """
name = "tiny"
train = "0:10"
test = "100:110"
formats = ["md", "html"]

[[runs]]
games = ["bossfight"]
encoders = ["impala"]
seeds = [1]
steps = 512
environments = 2

[evaluation]
draws = [0]
episodes = 8
slots = 4
batch = 8
probe = 8

[addendum]
rules = ["merged"]
"""


def command(study, store, *more):
    return [*GAPFLOOR, "study", "run", str(study), "--store", str(store), *more]


def hashes(store):
    return file_hashes(store, without=["log"])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "tiny.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def calm(study):
    """The store of an undisturbed run, and how long it took."""
    store = study.parent / "calm"
    started = time.monotonic()
    subprocess.run(command(study, store, "--workers", "1"), check=True, capture_output=True)
    return store, time.monotonic() - started


def test_the_study_ends_with_its_page_and_its_cells(calm):
    store, _ = calm
    assert (store / "report" / "index.html").is_file()
    assert len(list(store.glob("cells/*.parquet"))) == 8
    assert list(store.glob("replays/*.npz"))


def test_two_workers_give_the_bytes_of_one(study, calm):
    store = study.parent / "two"
    subprocess.run(command(study, store, "--workers", "2"), check=True, capture_output=True)
    assert hashes(store) == hashes(calm[0])


def test_killed_and_resumed_it_ends_with_the_same_bytes(study, calm):
    undisturbed, duration = calm
    store = study.parent / "killed"
    moments = random.Random(1)
    for _ in range(2):
        process = subprocess.Popen(
            command(study, store),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(moments.uniform(0.2, 0.8) * duration)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command(study, store), check=True, capture_output=True)
    assert hashes(store) == hashes(undisturbed)


def test_run_again_it_has_nothing_to_do(study, calm):
    again = subprocess.run(command(study, calm[0]), check=True, capture_output=True, text=True)
    assert "0 to do" in again.stderr


def test_status_counts_what_is_done(study, calm):
    base = [sys.executable, "-m", "gapfloor.cli.main", "study", "status", str(study), "--store", str(calm[0])]
    shown = subprocess.run(base, check=True, capture_output=True, text=True).stdout
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[2:]}
    assert rows["evaluate"] == ["6", "0", "0", "0"]
    assert rows["train"] == ["1", "0", "0", "0"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("ray")
    from study.ray_cluster import TwoNodes

    # A short path: Ray puts sockets below it, and their names may have a hundred characters at most.
    with tempfile.TemporaryDirectory(prefix="gfr", dir="/tmp") as folder:
        nodes = TwoNodes(Path(folder))
        yield nodes
        nodes.close()


def test_two_ray_nodes_one_of_them_killed_half_way_give_the_same_bytes(study, calm, cluster):
    undisturbed, duration = calm
    store = study.parent / "ray"
    process = subprocess.Popen(
        command(study, store, "--ray", cluster.address), env=cluster.environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 20 * duration
    while (
        len(list(store.glob("cells/*.json"))) < 3 and process.poll() is None and time.monotonic() < deadline
    ):
        time.sleep(0.2)
    cluster.kill_second()
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()[-2000:]
    assert hashes(store) == hashes(undisturbed)


def test_jobs_of_slurm_write_the_same_bytes(study, calm):
    """submitit's local executor runs the same jobs that it would give to SLURM."""
    pytest.importorskip("submitit")
    store = study.parent / "slurm"
    done = subprocess.run(
        command(study, store, "--slurm", "local", "--workers", "2"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert hashes(store) == hashes(calm[0])
