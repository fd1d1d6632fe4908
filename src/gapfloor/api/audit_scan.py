"""Which action rule a repository's evaluation uses, read from its code."""

from __future__ import annotations

from pathlib import Path

from gapfloor.audit.scan import ScanResult, scan


def audit_scan(target: str | Path = ".", *, entry: str | None = None) -> ScanResult:
    """Every evaluation path of a repository, with its action rule and where that rule comes from.

    Sources are read as text; nothing is run, imported or followed outside the target.

    Args:
        target: A folder, a Python file or a git directory; with @COMMIT for one commit.
        entry: The command that was used, e.g. `"python train.py --config x.yaml"`: the scan is then about its script,
            with its settings.

    Returns:
        The verdict and the evaluation paths. `print` shows the report for people, `to_sarif()` gives SARIF 2.1.0,
        `unstated()` the paths whose rule nobody set, and `changes_since(earlier)` what changed since another scan.

    Examples:
        >>> import gapfloor, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> characters = (folder / "evaluate.py").write_text('''
        ... import gym
        ... from stable_baselines3 import PPO
        ... env = gym.make("procgen:procgen-coinrun-v0", start_level=1000, num_levels=100)
        ... model = PPO.load("model.zip")
        ... obs = env.reset()
        ... for _ in range(1000):
        ...     action, _ = model.predict(obs, deterministic=True)
        ...     obs, reward, done, info = env.step(action)
        ... ''')
        >>> found = gapfloor.audit(folder)
        >>> [(path.rule, path.provenance) for path in found.paths]
        [('argmax', 'explicit-call-site')]
    """
    return scan(str(target), entry=entry)
