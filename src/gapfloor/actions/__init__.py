"""What is known about actions: partitions into equivalent ones, and entropy read through them."""

from gapfloor.actions.entropy import entropy, merged_entropy
from gapfloor.actions.partition import Partition, merged_argmax

__all__ = ["Partition", "entropy", "merged_argmax", "merged_entropy"]
