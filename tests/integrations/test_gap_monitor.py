"""The training monitor on a real library: what it logs, what it warns of, and that training does not notice it."""

import warnings

import numpy as np
import pytest

from gapfloor.errors import UsageError
from gapfloor.integrations import GapCallback, GapMonitor, GapWarning

torch = pytest.importorskip("torch")
stable_baselines3 = pytest.importorskip("stable_baselines3")

SMALL = {"train": "0:20", "test": "100:120", "levels": 8, "workers": 1}
NAMES = {"gapfloor/sampled/gap", "gapfloor/greedy/above_floor", "gapfloor/floor/test", "gapfloor/entropy/raw"}


def mostly_bad(observations):
    """The costly action is the likeliest by a little, so argmax always takes it and sampling seldom does."""
    return np.tile(np.log(np.array([0.46, 0.45, 0.05, 0.04], dtype=np.float32)), (len(observations), 1))


def trained(callback=None, log=None):
    torch.set_num_threads(1)
    model = stable_baselines3.PPO(
        "MlpPolicy",
        "CartPole-v1",
        seed=1,
        n_steps=128,
        batch_size=64,
        n_epochs=2,
        device="cpu",
        tensorboard_log=log,
    )
    model.learn(512, callback=callback)
    return model


def test_the_callback_logs_to_tensorboard_and_leaves_the_weights_as_they_would_be(tmp_path):
    callback = GapCallback("gym:CartPole-v1", every=256, **SMALL)
    measured = trained(callback, str(tmp_path))
    plain = trained()
    for name, tensor in plain.policy.state_dict().items():
        assert torch.equal(tensor, measured.policy.state_dict()[name]), name
    assert [reading.step for reading in callback.monitor.readings] == [256, 512]

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(next(tmp_path.iterdir())))
    events.Reload()
    assert set(events.Tags()["scalars"]) >= NAMES
    logged = [event.value for event in events.Scalars("gapfloor/sampled/gap")]
    assert logged == pytest.approx(
        [reading.values["gapfloor/sampled/gap"] for reading in callback.monitor.readings]
    )


def test_it_warns_once_when_argmax_is_below_the_floor_and_sampling_above():
    monitor = GapMonitor("gymnasium_envs:Bandit", every=10, **{**SMALL, "levels": 20})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        measured = [monitor(step, mostly_bad) is not None for step in (9, 10, 25, 29)]
    assert measured == [False, True, True, False]
    assert [str(one.message)[:60] for one in seen if one.category is GapWarning] == [
        "On held-out levels the greedy policy is below the floor (-20"
    ]
    assert monitor.readings[0].values["gapfloor/greedy/test"] == -200.0


def test_a_policy_on_both_sides_of_nothing_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error", GapWarning)
        monitor = GapMonitor("gymnasium_envs:Bandit", every=1, **SMALL)
        reading = monitor.measure(1, lambda observations: np.zeros((len(observations), 4), dtype=np.float32))
    assert reading.values["gapfloor/levels"] == 8


@pytest.mark.filterwarnings("ignore::gapfloor.integrations.gap_monitor.GapWarning")
def test_weights_and_biases_receives_the_same_names_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="gapfloor")
    try:
        monitor = GapMonitor("gymnasium_envs:Bandit", every=1, log_to=[run], **SMALL)
        for step in (5, 6):  # the library writes the values of one step when the next begins
            monitor.measure(step, mostly_bad)
        assert set(run.summary.keys()) >= NAMES
    finally:
        run.finish()


@pytest.mark.filterwarnings("ignore::gapfloor.integrations.gap_monitor.GapWarning")
def test_trackio_stores_the_same_names_and_steps_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))  # read when the library is imported
    trackio = pytest.importorskip("trackio")
    run = trackio.init(project="gapfloor", name="run", auto_log_cpu=False, auto_log_gpu=False)
    monitor = GapMonitor("gymnasium_envs:Bandit", every=1, log_to=[run], **SMALL)
    for step in (5, 6):
        monitor.measure(step, mostly_bad)
    trackio.finish()

    from trackio.sqlite_storage import SQLiteStorage

    logged = SQLiteStorage.get_logs("gapfloor", "run")
    assert [entry["step"] for entry in logged] == [5, 6]
    assert all(set(entry) >= NAMES for entry in logged)
    assert logged[0]["gapfloor/greedy/test"] == -200.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"every": 0}, "every"),
        ({"every": 1, "levels": 1}, "levels"),
        ({"every": 1, "levels": 300}, "use fewer"),
        ({"every": 1, "log_to": [3]}, "int is not a tracker"),
    ],
)
def test_a_wrong_setting_is_refused_before_training_starts(settings, words):
    with pytest.raises(UsageError, match=words):
        GapMonitor("gym:CartPole-v1", **settings)
