"""Commands that know which game they will look at have the engine read fewer pictures (`engines.picture_files`).

Pictures are read once per process, so this is only done where the process ends with the command, and where no code of
the user could look at another game.
"""

from __future__ import annotations

from collections.abc import Sequence

import click


def read_fewer_pictures(
    *, game: str = "", policies: Sequence[str] = (), references: Sequence[str] = ()
) -> None:
    """Read the pictures of `game` alone, or none where no policy looks at them."""
    from gapfloor.engines.picture_files import BACKGROUND_FOLDERS, only_look_at
    from gapfloor.play.references import needs_network
    from gapfloor.policies.load import PolicySource

    is_own_process = click.get_current_context().find_root().obj is True
    if not is_own_process or any(map(needs_network, references)):
        return
    if not policies:
        only_look_at(())
    elif game in BACKGROUND_FOLDERS and all(PolicySource(name).runs_no_code for name in policies):
        only_look_at([game])
