"""Networks with a memory: their state is kept from step to step, or they are refused with the remedy."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gapfloor
from gapfloor.actions.spaces import Discrete
from gapfloor.errors import PolicyError
from gapfloor.policies import notes
from gapfloor.policies.load import PolicySource
from gapfloor.policies.notes import PolicyWarning
from gapfloor.policies.policy import LogitsReader, StatefulPolicy, as_policy

SEEN = np.random.default_rng(0).normal(size=(6, 3, 4)).astype(np.float32)
pytestmark = pytest.mark.filterwarnings("ignore")


class WithCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.GRUCell(4, 8), nn.Linear(8, 2)

    def forward(self, x: Any, hidden: Any = None) -> Any:
        hidden = self.cell(x, hidden)
        return self.out(hidden), hidden


class WithLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out, self.value = nn.LSTM(4, 8, 2), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x: Any, state: Any = None) -> Any:
        features, state = self.lstm(x[None], state)
        return self.out(features[0]), self.value(features[0]), state


class Forgets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.out = nn.GRU(4, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        return self.out(self.gru(x[None])[0][0])


class Unbatched(WithLayer):
    """Rows are taken for steps: a trap of torch's layers."""

    def forward(self, x: Any, state: Any = None) -> Any:
        features, state = self.lstm(x, state)
        return self.out(features), state


class Sequences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.out = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        return self.out(self.gru(x)[0][:, -1])


def logits_of(policy: Any, firsts: list[list[bool]]) -> list[np.ndarray]:
    reader = LogitsReader(policy, name="p", n_slots=3, space=Discrete(2))
    return [reader.read(seen, np.array(first)) for seen, first in zip(SEEN, firsts, strict=False)]


@pytest.mark.parametrize("make", [WithCell, WithLayer])
def test_the_state_is_carried_and_starts_again_where_an_episode_starts(make: Any) -> None:
    torch.manual_seed(0)
    network = make().eval()
    policy = as_policy(network)
    assert isinstance(policy, StatefulPolicy)
    ours = logits_of(policy, [[True] * 3, [False] * 3, [False, True, False], [False] * 3])
    with torch.no_grad():
        expected, state = [], None
        for step in range(4):
            logits, *_, state = network(torch.from_numpy(SEEN[step]), state)
            expected.append(logits.numpy())
        begun, *_, again = network(torch.from_numpy(SEEN[2]))
        after, *_ = network(torch.from_numpy(SEEN[3]), again)
    for step in range(4):
        np.testing.assert_allclose(ours[step][[0, 2]], expected[step][[0, 2]], atol=1e-6)
    np.testing.assert_allclose(ours[2][1], begun[1], atol=1e-6)
    np.testing.assert_allclose(ours[3][1], after[1], atol=1e-6)
    assert np.abs(ours[1][1] - network(torch.from_numpy(SEEN[1]))[0].detach().numpy()[1]).max() > 1e-3


def test_a_memory_that_would_be_lost_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        PolicyError, match=r"contains a layer GRU, but forward takes no state.*forward\(x, h=None\)"
    ):
        logits_of(as_policy(Forgets()), [[True] * 3])
    with pytest.raises(PolicyError, match=r"cannot be kept row by row.*forward\(x, h=None\)"):
        logits_of(as_policy(Unbatched()), [[True] * 3])
    network = Forgets()
    network.keeps_no_state = True  # type: ignore[assignment]
    assert logits_of(as_policy(network), [[True] * 3])[0].shape == (3, 2)


def test_a_sequence_as_an_observation_needs_no_state() -> None:
    assert as_policy(Sequences()).logits(SEEN.transpose(1, 0, 2)).shape == (3, 2)


def test_the_argument_of_a_plain_network_may_be_called_state() -> None:
    class Plain(nn.Linear):
        def forward(self, state: Any) -> Any:
            return super().forward(state)

    assert not isinstance(as_policy(Plain(4, 2)), StatefulPolicy)


def test_a_file_of_weights_carries_the_state_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from __future__ import annotations\nfrom typing import Any\nfrom torch import nn\n\n"
    (tmp_path / "with_memory.py").write_text(source + inspect.getsource(WithCell))
    monkeypatch.chdir(tmp_path)
    network = WithCell()
    torch.save(network.state_dict(), "cell.pt")
    policy = PolicySource("statedict:cell.pt,net=with_memory:WithCell").load()
    firsts = [[True] * 3, [False] * 3]
    for ours, theirs in zip(logits_of(policy, firsts), logits_of(as_policy(network), firsts), strict=True):
        assert np.array_equal(ours, theirs)


def test_evaluate_gives_a_recurrent_module_its_memory() -> None:
    class Alternates(nn.Module):
        """Pushes left and right in turn, which it can do only if it remembers."""

        def forward(self, x: Any, h: Any = None) -> Any:
            h = x[:, :1] * 0 if h is None else 1 - h
            return torch.cat([h, 1 - h], dim=1) * 20, h

    settings = {
        "rules": "greedy",
        "draws": 0,
        "episodes": 16,
        "train": "0:16",
        "test": "100:116",
        "workers": 1,
    }
    found = gapfloor.evaluate(Alternates(), game="gym:CartPole-v1", progress=False, **settings)
    assert min(row.mean for row in found.returns) > 15  # one direction alone lasts 9 steps


def test_statistics_next_to_a_model_are_suspected(tmp_path: Path) -> None:
    weights = nn.Linear(4, 2).state_dict()
    torch.save(weights, tmp_path / "model.pt")
    line = f"statedict:{tmp_path / 'model.pt'},net=torch.nn:Linear,args=4,2"
    notes._SHOWN.clear()
    (tmp_path / "vec_normalize.pkl").write_bytes(b"")
    with pytest.warns(PolicyWarning, match=r"vec_normalize\.pkl lies next to .*model\.pt.*,vecnormalize="):
        PolicySource(line).load()
