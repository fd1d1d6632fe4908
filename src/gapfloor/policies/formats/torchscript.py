"""TorchScript files as policies: `torchscript:model.pt`.

A TorchScript file is a program in torch's own small language, and torch reads it without Python's pickle: it
can compute with tensors and cannot call Python. The one other thing it can do is open files, through operators that map
or save them; a program that names one of these, or an operator of an extension, is refused unless the user trusts it.
The file is read once; torch loads a new archive that is made of the entries that were checked.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.archive import Archive, DamagedArchiveError, read_archive
from gapfloor.policies.formats.content_hash import extend_hash, hash_bytes
from gapfloor.policies.formats.file_bytes import read_policy_file
from gapfloor.policies.formats.image_input import InputForm
from gapfloor.policies.formats.inference import repeatable, require_torch
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import first_line
from gapfloor.policies.formats.torchscript_code import word_that_reaches_out
from gapfloor.policies.formats.torchscript_tensors import check_torchscript_tensors
from gapfloor.policies.protocol import Logits


class TorchScriptPolicy:
    """A scripted or traced network; see `gapfloor.policies.protocol.Policy`."""

    backend = "torch"

    def __init__(self, module: Any, form: InputForm, *, name: str, fingerprint: str, device: str) -> None:
        self.name, self.fingerprint, self.device = name, fingerprint, device
        self.header: Mapping[str, Any] = {"encoder": "torchscript"}
        self._module, self._form = module, form

    def logits(self, observations: Any) -> Logits:
        """Logits: the network's output, or the one that `output=` names."""
        import torch

        prepared = self._form.apply(observations)
        jit: Any = torch.jit
        # Unoptimised: torch would rewrite the program after the first calls, and later logits could differ in bits.
        with repeatable(), jit.optimized_execution(False):
            if isinstance(prepared, Mapping):
                inputs: Any = {k: torch.from_numpy(each).to(self.device) for k, each in prepared.items()}
            else:
                inputs = torch.from_numpy(prepared).to(self.device)
            outputs = self._form.choose(self._module(inputs), name=self.name)
            logits: Logits = outputs.detach().float().cpu().numpy()
        return logits


def load_torchscript(spec: PolicySpec, *, device: str) -> TorchScriptPolicy:
    """The policy of a file that `torch.jit.save` wrote."""
    torch = require_torch(device)
    path, form = spec.path, InputForm.of(spec)
    content = read_policy_file(path)
    archive = _checked(content, spec)
    try:
        module = torch.jit.load(io.BytesIO(archive.rebuilt()), map_location=device).eval()
    except Exception as error:
        raise PolicyError(
            f"{path} does not load as TorchScript ({type(error).__name__}: {first_line(error)}): save it again with "
            "torch.jit.save()."
        ) from None
    return TorchScriptPolicy(
        module,
        form,
        name=path.stem,
        fingerprint=extend_hash(hash_bytes(content), form=form.describe()),
        device=device,
    )


def _checked(content: bytes, spec: PolicySpec) -> Archive:
    try:
        archive = read_archive(content, name=str(spec.path))
        reaching = word_that_reaches_out(archive.entries)
    except (DamagedArchiveError, UnicodeDecodeError):
        raise PolicyError(
            f"{spec.path} is not a TorchScript file, or it is damaged: give one that torch.jit.save() wrote."
        ) from None
    if not any(name.lower().endswith(".py") for name in archive.entries):
        raise PolicyError(
            f"{spec.path} holds no TorchScript: torch.save() wrote it. Save it with torch.jit.save(), or load a "
            f"state_dict with statedict:{spec.path},net=package.module:Class."
        )
    if reaching and not spec.is_trusted:
        raise PolicyError(
            f"{spec.path} uses {reaching}, which reaches outside its tensors: add ,trust=yes to run it, only for "
            "files that you made or whose author you trust."
        )
    try:
        check_torchscript_tensors(archive.entries)
    except DamagedArchiveError as error:
        raise PolicyError(
            f"{spec.path} is damaged, or torch.jit.save() did not write it ({error}): save or copy it again."
        ) from None
    return archive
