"""A tiny study with the real engine, trainer and report: interrupted or not, the same bytes."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from command_line import GAPFLOOR
from folders import file_hashes
from gapfloor.study.journal import TaskJournal
from gapfloor.study.runner import ATTEMPTS_IF_LOST
from study.tiny_study import STUDY


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
    for _ in range(int(os.environ.get("GAPFLOOR_KILLS", "2"))):
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


def status(study, store):
    asked = [*GAPFLOOR, "study", "status", str(study), "--store", str(store), "--json"]
    return json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_study_shows_nothing_as_running_and_a_live_one_is_announced(study, tmp_path, number):
    # Whoever runs the tests in the background ignores Ctrl-C, and so would the study.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store, journal = tmp_path / "store", TaskJournal(tmp_path / "store")
    process = subprocess.Popen(
        command(study, store, "--workers", "1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (status(study, store)["running"] if journal.workers() else False):
        assert process.poll() is None
    second = subprocess.Popen(command(study, store), stderr=subprocess.PIPE, text=True)
    first_line = second.stderr.readline()
    second.kill()
    second.wait()
    second.stderr.close()
    (worker,) = re.findall("Another study run works on this store: process ([0-9]+) on ", first_line)
    assert Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1] == str(process.pid)
    process.send_signal(number)
    assert process.wait() in (130, 143, -signal.SIGKILL)
    deadline = time.monotonic() + 10
    while journal.workers() and time.monotonic() < deadline:  # a worker notices that its parent was killed
        time.sleep(0.1)
    assert status(study, store)["running"] == []


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


CRASHING = """
import os, sys
from gapfloor.study import executors
from gapfloor.study.tasks import CalibrateTask, FloorTask
from gapfloor.study.journal import TaskJournal
from gapfloor.study.model import Study
from gapfloor.study.runner import LOST, StudyOutcome, do_tasks
from pathlib import Path

study, store, address, told = sys.argv[1:]
tasks = [
    FloorTask(name="crash", game="no-such-game", reference="uniform"),
    CalibrateTask(name="sound", game="bossfight"),
]


def tell(*words):  # into a file: Ray prints lines of its own between and into ours
    with open(told, "a") as file:
        print(*words, file=file)


class Listener:
    def ended(self, task, error, again):
        tell(task.name, bool(error), error == LOST, again)


def carry_out(task, workplace, sound=executors.carry_out):
    return os._exit(1) if task.name == "crash" else sound(task, workplace)


executors.carry_out = carry_out
workplace = executors.Workplace(Study.read(study), Path(store))
executor = executors.RayExecutor(workplace, address=address)
outcome = StudyOutcome()
do_tasks(tasks, outcome, executor=executor, progress=Listener(), journal=TaskJournal(Path(store)))
tell("failed", sorted(outcome.failed), "done", outcome.done)
"""


def test_a_task_that_always_crashes_its_ray_worker_is_given_up_and_the_rest_continues(
    study, cluster, tmp_path
):
    told = tmp_path / "told.txt"
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, str(study), str(tmp_path), cluster.address, str(told)],
        env=cluster.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.exists(), done.stderr[-2000:]
    lines = told.read_text().splitlines()
    assert "failed ['crash'] done ['sound']" in lines, done.stderr[-2000:]
    assert lines.count("crash True True True") == ATTEMPTS_IF_LOST - 1
    assert lines.count("crash True True False") == 1


def test_a_ray_cluster_without_authentication_is_refused_unless_the_user_says_so(study, tmp_path):
    pytest.importorskip("ray")
    from study.ray_cluster import OneNode

    with tempfile.TemporaryDirectory(prefix="gfo", dir="/tmp") as folder:
        node = OneNode(Path(folder), authentication={"RAY_AUTH_MODE": "disabled"})
        try:
            refused = subprocess.run(
                command(study, tmp_path / "no", "--ray", node.address), env=node.environment, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            assert refused.returncode == 2
            assert "asks for no token" in refused.stderr
            assert not list((tmp_path / "no" / "cells").iterdir())
            used = subprocess.run(
                command(study, tmp_path / "yes", "--ray", node.address, "--without-authentication"),
                env=node.environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert used.returncode == 0, used.stderr[-2000:]
        finally:
            node.close()
