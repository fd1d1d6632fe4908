"""Engines: batches of environments whose levels are seeds."""

from gapfloor.engines.protocol import Engine, EngineSpec

__all__ = ["Engine", "EngineSpec"]
