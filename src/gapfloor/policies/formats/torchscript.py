"""TorchScript files as policies: `torchscript:model.pt`.

A TorchScript file is a program in torch's own small language, and torch reads it without Python's pickle: it
can compute with tensors and cannot call Python. The one thing it can do besides is to open files, through
operators that map or save them; a file whose code names one, or an operator of an extension, is refused without
the user's word.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.content_hash import extend_hash, hash_files
from gapfloor.policies.formats.image_input import InputForm
from gapfloor.policies.formats.inference import repeatable, require_torch
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.protocol import Logits

#: Operators that reach outside tensors, as TorchScript's code spells them.
#: By the word alone, wherever it stands: a namespace can be spelt with blanks or given another name. A name that
#: `getattr` spells with escapes is one that does not want to be read.
_REACHING_OUT = re.compile(
    r"(?:\btorch\s*\.\s*)?\b(?:from_file|_?save(?:_\w+)?)\b|\btorch\s*\.\s*_?load\w*|\bops\s*\.\s*(?!prim\b|aten\b)\w+"
    r"|__torch__\s*\.\s*torch\s*\.\s*classes|\bgetattr\s*\([^)]*\\[^)]*"
)


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
    path, form = spec.file(), InputForm.of(spec)
    code = _code(path)
    reaching = _REACHING_OUT.search(code)
    if reaching and not spec.is_trusted:
        raise PolicyError(
            f"{path} uses {reaching.group(0)}, which reaches outside its tensors: add ,trust=yes to run it, only for "
            "files that you made or whose author you trust."
        )
    try:
        module = torch.jit.load(str(path), map_location=device).eval()
    except Exception as error:
        raise PolicyError(
            f"{path} does not load as TorchScript: {type(error).__name__}: {str(error).strip().splitlines()[0]}"
        ) from None
    return TorchScriptPolicy(
        module,
        form,
        name=path.stem,
        fingerprint=extend_hash(hash_files(path), form=form.describe()),
        device=device,
    )


def _code(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            # Every entry, not every name: torch finds names in any case, and the first of two that are equal.
            sources = [entry for entry in archive.infolist() if entry.filename.lower().endswith(".py")]
            if not sources:
                raise PolicyError(
                    f"{path} holds no TorchScript: it is what torch.save() wrote; save it with torch.jit.save(), or "
                    "load a state_dict with cleanrl:PATH,agent=package.module:Agent."
                )
            return "\n".join(archive.read(entry).decode() for entry in sources)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError):
        raise PolicyError(
            f"{path} is not a TorchScript file: give one that torch.jit.save() wrote."
        ) from None
