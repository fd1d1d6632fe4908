"""The audit of evaluation code: reading it, watching it run, and the ledger of audits done by hand."""

from __future__ import annotations

from pathlib import Path

from gapfloor.api.audit_ledger import audit_ledger, audit_registry, audit_verify
from gapfloor.api.audit_scan import audit_scan
from gapfloor.api.audit_trace import audit_trace
from gapfloor.audit.probe import probe_rule
from gapfloor.audit.scan import ScanResult


class Audit:
    """Find the action rule that a code base uses at test time.

    `audit(target)` reads the code; it is short for `audit.scan(target)`. `audit.trace(command)` runs a command and
    watches how its actions are chosen, and `audit.probe(policy, observations)` does the same with a policy in memory.
    `audit.ledger()` has the twelve code bases that were classified by hand, `audit.registry()` further ones, and
    `audit.verify()` checks their evidence in clones.

    Args:
        target: A folder, a Python file or a git directory; with @COMMIT for one commit.
        entry: The command that was used, e.g. "python train.py --config x.yaml": the scan is then about its script,
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
        >>> ledger = gapfloor.audit.ledger()
        >>> len(ledger.entries), ledger.counts.evaluate_heldout
        (12, 11)
    """

    scan = staticmethod(audit_scan)
    trace = staticmethod(audit_trace)
    probe = staticmethod(probe_rule)
    ledger = staticmethod(audit_ledger)
    registry = staticmethod(audit_registry)
    verify = staticmethod(audit_verify)

    def __call__(self, target: str | Path = ".", *, entry: str | None = None) -> ScanResult:
        return audit_scan(target, entry=entry)


audit = Audit()
