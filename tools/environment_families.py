"""Families of public environments, and what a seed decides in each: a level, a start state, chance, or nothing.

A level set is a range of seeds. Whether a gap between two ranges says anything about generalization depends on what a
seed is in that family: in ProcGen it is another level, in MuJoCo another start near the same state, in Atari only the
number of idle steps at the start. The registry states it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gapfloor.engines.engine import ENVPOOL, GYMNASIUM, PROCGEN, EngineSpec


@dataclass(frozen=True)
class EnvironmentFamily:
    """Environments that share what a seed means."""

    name: str
    seed: str
    """level, start state, chance, or a combination; one or two words for tables."""
    words: str
    """What that is in this family."""
    module: str
    """Part of the names of modules that hold such environments."""


_ONE_MAP = "the first state and the chance in what follows, on one map"
_DRAWN = "walls, doors, objects, goal and start, as far as the task draws them"
_ONE_SCENE = "the positions of object and goal in one scene"
_NO_LEVELS = "the game is deterministic and has no levels"


#: Every family, special cases of a module before the module itself.
FAMILIES = (
    EnvironmentFamily("ProcGen", "level", "its layout, its objects and its looks", "procgen"),
    EnvironmentFamily("classic control", "start state", "near one point; nothing else differs", "classic_control"),
    EnvironmentFamily("classic control", "start state", "near one point; nothing else differs", "phys2d"),
    EnvironmentFamily("Box2D", "level", "the terrain or track, and the first push", "box2d"),
    EnvironmentFamily("toy text", "start and chance", _ONE_MAP, "toy_text"),
    EnvironmentFamily("toy text", "start and chance", _ONE_MAP, "tabular"),
    EnvironmentFamily("DM Control", "start state", "of one body, in some tasks with a target", "mujoco.dmc"),
    EnvironmentFamily("Meta-World", "start state", _ONE_SCENE, "metaworld"),
    EnvironmentFamily("robotics", "start state", _ONE_SCENE, "mujoco.robotics"),
    EnvironmentFamily("robotics", "start state", _ONE_SCENE, "gymnasium_robotics"),
    EnvironmentFamily("MuJoCo Playground", "start state", "of one robot, with its commands", "mujoco.playground"),
    EnvironmentFamily("MyoSuite", "start state", "of one body, or its target", "mujoco.myosuite"),
    EnvironmentFamily("MuJoCo", "start state", "near one pose; nothing else differs", "mujoco"),
    EnvironmentFamily("MiniGrid", "level", _DRAWN, "minigrid"),
    EnvironmentFamily("Atari", "chance", f"only the number of idle steps at the start: {_NO_LEVELS}", "atari"),
    EnvironmentFamily("Atari", "chance", f"only which actions are sticky: {_NO_LEVELS}", "ale_py"),
    EnvironmentFamily("ViZDoom", "start and chance", "positions and chance on one map", "vizdoom"),
    EnvironmentFamily("highway", "start state", "the positions and speeds of the other cars on one road", "highway"),
    EnvironmentFamily("Crafter", "level", "the world, and the chance in what follows", "crafter"),
    EnvironmentFamily("Google Research Football", "chance", "the chance in a match of one scenario", "gfootball"),
    EnvironmentFamily("Jumanji", "level", "an instance of the problem, where the task draws one", "jumanji"),
    EnvironmentFamily("Pgx", "start and chance", "the cards or dice, and who begins", "pgx"),
)  # fmt: skip


def family_of(spec: EngineSpec) -> EnvironmentFamily | None:
    """The family of an environment; None for one that is not known, e.g. the user's own."""
    module = _module(spec)
    return next((family for family in FAMILIES if family.module in module), None)


def _module(spec: EngineSpec) -> str:
    """The module that holds the environment, without the name of the engine before it."""
    if spec.engine == PROCGEN.name:
        return PROCGEN.name
    if spec.engine == ENVPOOL.name:
        from envpool.registration import registry

        known = registry.specs.get(spec.game)
        return str(known[0]).removeprefix("envpool.") if known else PROCGEN.name
    if spec.engine != GYMNASIUM.name:
        return ""
    import gymnasium

    known_id = gymnasium.registry.get(spec.game)
    return str(known_id.entry_point) if known_id is not None else ""
