"""Encoders: sizes to the parameter, wiring of the pyramid, and one file per encoder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gapfloor.errors import UsageError
from gapfloor.training import encoders
from gapfloor.training.agent import make_agent
from gapfloor.training.encoders import build_encoder, encoder_names

SHAPE = (64, 64, 3)


@pytest.mark.parametrize(("name", "count"), [("impala", 622_144), ("fpn", 521_472), ("impoola", 106_048)])
def test_encoders_have_exactly_the_papers_parameters(name: str, count: int) -> None:
    encoder = build_encoder(name, observation_shape=SHAPE)
    assert sum(parameter.numel() for parameter in encoder.parameters()) == count


@pytest.mark.parametrize("name", ["impala", "fpn", "impoola"])
def test_encoders_give_256_features(name: str) -> None:
    features = build_encoder(name, observation_shape=SHAPE)(torch.rand(2, 3, 64, 64))
    assert features.shape == (2, 256)
    assert (features >= 0).all()


@pytest.mark.parametrize("name", ["impala", "fpn", "impoola"])
def test_every_parameter_has_a_part_in_the_features(name: str) -> None:
    torch.manual_seed(0)
    encoder = build_encoder(name, observation_shape=SHAPE)
    encoder(torch.rand(8, 3, 64, 64)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


@pytest.mark.parametrize(
    ("changed", "reached"), [(2, [True, True, True]), (1, [True, True, False]), (0, [True, False, False])]
)
def test_a_map_reaches_its_own_and_all_finer_pooled_outputs(changed: int, reached: list[bool]) -> None:
    torch.manual_seed(0)
    fpn = build_encoder("fpn", observation_shape=SHAPE)
    maps = [torch.rand(1, channels, size, size) for channels, size in ((16, 32), (32, 16), (32, 8))]
    before = fpn.pool(maps)
    maps[changed] = maps[changed] + 1
    after = fpn.pool(maps)
    assert [p.shape[1:] for p in before] == [(32, 4, 4)] * 3
    assert [bool((a != b).any()) for a, b in zip(after, before, strict=True)] == reached


def plain_pyramid(fpn: nn.Module, maps: list[torch.Tensor]) -> list[torch.Tensor]:
    """The pyramid as its description reads: laterals, top-down sums, 3x3 smoothing, average-pooling."""
    fused = [lateral(m) for lateral, m in zip(fpn.laterals, maps, strict=True)]
    for finer in (1, 0):
        fused[finer] = fused[finer] + F.interpolate(fused[finer + 1], scale_factor=2, mode="nearest")
    return [F.adaptive_avg_pool2d(smooth(m), 4) for smooth, m in zip(fpn.smooths, fused, strict=True)]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_sums_through_the_pyramid_equal_the_plain_pyramid(layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    fpn = build_encoder("fpn", observation_shape=SHAPE).double()
    maps = [
        torch.randn(3, channels, size, size, dtype=torch.float64)
        .contiguous(memory_format=layout)
        .requires_grad_()
        for channels, size in ((16, 32), (32, 16), (32, 8))
    ]
    leaves = [*maps, *fpn.laterals.parameters(), *fpn.smooths.parameters()]
    plain, found = torch.stack(plain_pyramid(fpn, maps)), torch.stack(fpn.pool(maps))
    torch.testing.assert_close(found, plain, rtol=1e-11, atol=1e-11)
    weights = torch.randn_like(plain)
    wanted = torch.autograd.grad((plain * weights).sum(), leaves)
    torch.testing.assert_close(
        torch.autograd.grad((found * weights).sum(), leaves), wanted, rtol=1e-11, atol=1e-11
    )


def test_the_pyramid_learns_after_it_has_inferred() -> None:
    fpn = build_encoder("fpn", observation_shape=(32, 32, 3))
    with torch.inference_mode():
        fpn(torch.rand(1, 3, 32, 32))
    fpn(torch.rand(1, 3, 32, 32)).sum().backward()


def test_an_encoder_is_one_file_whose_name_is_its_name() -> None:
    folder = Path(next(iter(encoders.__path__)))
    assert encoder_names() == sorted(f.stem for f in folder.glob("*.py") if not f.stem.startswith("_"))


def test_a_new_file_is_a_new_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pixels.py").write_text(
        "from torch import nn\n"
        "class PixelsEncoder(nn.Module):\n"
        "    features = 3\n"
        "    def __init__(self, *, observation_shape):\n"
        "        super().__init__()\n"
        "    def forward(self, images):\n"
        "        return images.mean(dim=(2, 3))\n"
    )
    monkeypatch.setattr(encoders, "__path__", [*encoders.__path__, str(tmp_path)])
    assert "pixels" in encoder_names()
    agent = make_agent("pixels", observation_shape=SHAPE, n_actions=15, seed=0)
    assert agent(torch.zeros(2, 64, 64, 3, dtype=torch.uint8))[0].shape == (2, 15)


def test_an_unknown_encoder_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="Unknown encoder 'impola': did you mean impoola or impala"):
        build_encoder("impola", observation_shape=SHAPE)


def test_a_new_policy_is_all_but_uniform() -> None:
    agent = make_agent("impala", observation_shape=SHAPE, n_actions=15, seed=1)
    logits, values = agent(torch.randint(0, 256, (4, 64, 64, 3), dtype=torch.uint8))
    assert torch.log_softmax(logits, 1).exp().sub(1 / 15).abs().max() < 0.005
    assert values.shape == (4,)


def test_heads_are_orthogonal_and_weights_follow_the_seed() -> None:
    first, same, other = (make_agent("fpn", observation_shape=SHAPE, n_actions=15, seed=s) for s in (1, 1, 2))
    gram = first.policy.weight @ first.policy.weight.T
    torch.testing.assert_close(gram, torch.eye(15) * 1e-4, rtol=0, atol=1e-9)
    assert first.value.weight.norm().item() == pytest.approx(1, abs=1e-5)
    pairs = zip(first.parameters(), same.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(first.encoder.projection.weight, other.encoder.projection.weight)
    assert {name.split(".")[0] for name in first.state_dict()} == {"encoder", "policy", "value"}
