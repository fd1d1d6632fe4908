"""Engines: batches of environments whose levels are seeds."""

from gapfloor.engines.engine import Engine, EngineSpec

__all__ = ["Engine", "EngineSpec"]
