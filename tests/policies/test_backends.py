"""Which library computes a network's logits, and what is said where the usual one cannot."""

from __future__ import annotations

import pytest

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.policies import backends
from gapfloor.policies.backends import check_backend, computes_graphs, usual_backend
from gapfloor.policies.notes import PolicyWarning


@pytest.fixture
def without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_has_onnxruntime", lambda: False)
    monkeypatch.setattr("gapfloor.policies.notes._SHOWN", set())


def test_onnx_runtime_is_usual_on_the_cpu_and_torch_on_other_devices() -> None:
    assert (usual_backend("cpu"), usual_backend("cuda")) == ("onnxruntime", "torch")
    assert computes_graphs(None, "cpu")
    assert not computes_graphs("torch", "cpu")


@pytest.mark.usefixtures("without_onnxruntime")
def test_torch_takes_over_with_a_note_where_onnx_runtime_is_missing() -> None:
    with pytest.warns(PolicyWarning, match="ONNX Runtime is not installed, so torch computes logits"):
        assert not computes_graphs(None, "cpu")
    with pytest.raises(MissingExtraError, match="needs onnx and onnxruntime: pip install"):
        check_backend("onnxruntime")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="torhc"):
        check_backend("torhc")
    with pytest.raises(UsageError, match="on the CPU, not on 'cuda'"):
        computes_graphs("onnxruntime", "cuda")
