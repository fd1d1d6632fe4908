"""The two measurements as Python functions: the same ones that stand behind the commands."""

from gapfloor.evaluation.evaluate import evaluate
from gapfloor.evaluation.floor import measure_floor

__all__ = ["evaluate", "measure_floor"]
