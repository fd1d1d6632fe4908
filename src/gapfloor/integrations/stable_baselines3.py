"""A callback of Stable-Baselines3 that measures the gap and the distance from the floor during training."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from gapfloor.integrations.gap_monitor import GapMonitor


class GapCallback(BaseCallback):  # type: ignore[misc]  # the library is not typed here
    """Measures the model every `every` steps and records the values in the model's own logger.

    The arguments are those of `GapMonitor`. Values appear next to the library's own, e.g. in TensorBoard
    (`tensorboard_log=` of the model).

    Example:
        model = PPO("MlpPolicy", "CartPole-v1", tensorboard_log="logs")
        model.learn(100_000, callback=GapCallback("gym:CartPole-v1", every=20_000))
    """

    def __init__(self, game: str, *, every: int, verbose: int = 0, **settings: Any) -> None:
        super().__init__(verbose)
        self.monitor = GapMonitor(game, every=every, **settings)

    def _on_step(self) -> bool:
        reading = self.monitor(self.num_timesteps, self.model)
        if reading is not None:
            for name, value in reading.values.items():
                self.logger.record(name, value)
            self.logger.dump(self.num_timesteps)
        return True
