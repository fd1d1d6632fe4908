"""What is known about actions: partitions into equivalent ones, and entropy read through them."""

from gapfloor.actions.entropy import entropy, merge, merged_entropy
from gapfloor.actions.partition import Partition, merged_argmax

__all__ = ["Partition", "entropy", "merge", "merged_argmax", "merged_entropy"]
