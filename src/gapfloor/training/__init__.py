"""Training: encoders, PPO, checkpoints, exact resume and the training log."""
