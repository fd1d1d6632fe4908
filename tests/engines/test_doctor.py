"""The doctor says what is promised on a GPU, and that nothing was run on one."""

from gapfloor.engines.doctor import examine_gpu


def test_without_a_gpu_every_promise_is_tested():
    assert examine_gpu(None).mark == "ok"
    assert "every promise is tested" in examine_gpu(None).words


def test_a_gpu_is_labelled_as_never_run():
    found = examine_gpu("NVIDIA H100")
    assert found.mark == "note"
    assert "NVIDIA H100: --device cuda has never been run" in found.words
