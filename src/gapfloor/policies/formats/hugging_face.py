"""Policies on the Hugging Face Hub: `hf:OWNER/NAME[@REVISION][/FILE]`, resolved through the Hub's own cache.

A file of the Hub becomes a local path with the options that the user gave, so the checks of its format apply and
nothing is unpickled. With `HF_HUB_OFFLINE=1` only the cache is used.
"""

from __future__ import annotations

import re
from pathlib import Path

from gapfloor.errors import MissingExtraError, PolicyError
from gapfloor.input_files import read_policy_file
from gapfloor.policies.formats.spec import CHECKPOINT, FORMATS, PolicySpec, kind_of_content
from gapfloor.policies.notes import first_line

#: The files of a repository that can be a policy, by their endings.
ENDINGS = (".safetensors", *(ending for each in FORMATS.values() for ending in each.endings))

_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?(?:/(?P<file>.+))?")


def fetch_policy(spec: PolicySpec) -> PolicySpec:
    """The local file that `hf:OWNER/NAME` means; its name is a path, whatever characters it holds."""
    match = _NAME.fullmatch(str(spec.path))
    if match is None:
        raise PolicyError(
            f"'hf:{str(spec.path)[:200]}' does not name a file on the Hub: write hf:OWNER/NAME, hf:OWNER/NAME/FILE or "
            "hf:OWNER/NAME@REVISION/FILE."
        )
    try:
        import huggingface_hub as hub
        import huggingface_hub.constants
    except ImportError as error:
        raise MissingExtraError('hf: needs huggingface_hub: pip install "gapfloor[hub]".') from error
    repo, file, revision = match["repo"], match["file"], {"revision": match["revision"]}
    wanted = f"{repo}/{file}" if file else repo
    try:
        if file is None:
            if hub.constants.HF_HUB_OFFLINE:
                folder = Path(hub.snapshot_download(repo, **revision, local_files_only=True))
                names = [
                    str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()
                ]
            else:
                names = list(hub.HfApi().list_repo_files(repo, **revision))
            file = _only_policy(names, repo)
        path = Path(hub.hf_hub_download(repo, file, **revision))
    except PolicyError:
        raise
    except Exception as error:
        raise PolicyError(
            f"{wanted} cannot be fetched from the Hugging Face Hub ({first_line(error)}): check the name, the revision "
            "and the network."
        ) from error
    if path.suffix == ".safetensors" and not spec.options:
        return PolicySpec(CHECKPOINT, path)
    kind = "cleanrl" if file.endswith(".cleanrl_model") else kind_of_content(read_policy_file(path))
    if kind is None:
        raise PolicyError(f"{file} of {repo} is not a file that gapfloor knows: name another file of it.")
    return PolicySpec(kind, path, spec.options).checked()


def _only_policy(names: list[str], repo: str) -> str:
    """The file of a repository that can be a policy; refused where there is none, or more than one."""
    found = sorted(name for name in names if name.endswith(ENDINGS))
    if len(found) == 1:
        return found[0]
    if not found:
        raise PolicyError(f"{repo} has no file that can be a policy ({', '.join(ENDINGS)}).")
    raise PolicyError(
        f"{repo} has {len(found)} files that can be a policy ({', '.join(found[:10])}): name one, e.g. "
        f"hf:{repo}/{found[0]}."
    )
