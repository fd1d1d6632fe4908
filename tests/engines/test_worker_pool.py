"""Workers serve plain scripts, standard input and `python -c` without importing the user's `__main__`."""

import os
import signal
import subprocess
import sys
import time

import pytest

import gapfloor
from gapfloor.engines import worker_pool

SCRIPT = """
import numpy as np
import gapfloor

weights = np.random.default_rng(0).normal(size=(64 * 64 * 3, 15)).astype(np.float32) * 0.001
print("the script runs")

def policy(observations):
    return observations.reshape(len(observations), -1).astype(np.float32) @ weights

few = dict(game="starpilot", rules="sampled,greedy", episodes=4, slots=4, draws=(0, 1))
spread = gapfloor.evaluate(policy, workers=2, **few)
closure = gapfloor.evaluate(lambda observations: policy(observations), workers=2, **few)
here = gapfloor.evaluate(policy, workers=1, **few)
returns = [[row["mean"] for row in result.to_dict()["cells"]] for result in (spread, closure, here)]
assert returns[0] == returns[1] == returns[2]
print("the same returns")
"""


@pytest.mark.parametrize("way", ["a plain script", "standard input", "python -c"])
def test_functions_and_closures_of_an_unguarded_script_are_played_by_workers(way, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = {"a plain script": [str(path)], "standard input": ["-"], "python -c": ["-c", SCRIPT]}[way]
    done = subprocess.run(
        [sys.executable, *command],
        input=SCRIPT if command == ["-"] else "",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Once: a worker that imported the script would print again.
    assert done.stdout.count("the script runs") == 1
    assert "the same returns" in done.stdout


DAEMON = """
import multiprocessing
import numpy as np
import gapfloor

def measure():
    policy = lambda observations: np.zeros((len(observations), 15))
    gapfloor.evaluate(policy, game="starpilot", rules="sampled", episodes=4, slots=4, draws=0, workers=2)

process = multiprocessing.get_context("fork").Process(target=measure, daemon=True)
process.start()
process.join()
raise SystemExit(process.exitcode)
"""


def test_a_daemonic_process_plays_alone_because_it_may_not_start_others():
    done = subprocess.run([sys.executable, "-c", DAEMON], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_object_that_cannot_be_pickled_is_played_in_this_process():
    import threading

    import numpy as np

    import gapfloor

    lock = threading.Lock()

    def policy(observations):
        with lock:
            return np.zeros((len(observations), 15), dtype=np.float32)

    result = gapfloor.evaluate(
        policy, game="starpilot", rules="sampled", episodes=4, slots=4, draws=(0, 1), workers=2
    )
    assert result.to_dict()["cells"]


def test_workers_end_when_their_parent_is_killed(tmp_path):
    code = (
        "import os, time\n"
        "from gapfloor.engines.worker_pool import shared_pool\n"
        "print(shared_pool(1).submit(os.getpid).result(), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    for _ in range(600):
        if not os.path.exists(f"/proc/{worker}"):
            return
        time.sleep(0.05)
    pytest.fail("the worker is still there")


FORKED = """
import concurrent.futures, multiprocessing
import gapfloor

def measure(_=0):
    return gapfloor.floor("gym:CartPole-v1", draws=0, episodes=64, workers=2, progress=False).floors[0].mean

here, fork = measure(), multiprocessing.get_context("fork")
with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
    assert list(pool.map(measure, range(2), timeout=500)) == [here, here]
with fork.Pool(2) as pool:
    assert pool.map(measure, range(2)) == [here, here]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_a_forked_process_does_not_wait_for_the_workers_of_its_parent(tmp_path):
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    done = subprocess.run(
        [sys.executable, str(script)], check=True, timeout=600, cwd=tmp_path, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr


def test_no_worker_starts_for_a_cheap_environment_unless_it_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(worker_pool, "shared_pool", asked.append)
    gapfloor.floor("gym:CartPole-v1", draws=0, episodes=32, progress=False)
    assert asked == []
