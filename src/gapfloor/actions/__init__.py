"""What is known about actions: partitions into equivalent ones, and entropy read through them."""

from gapfloor.actions.partition import Partition, entropy, merged_argmax, merged_entropy

__all__ = ["Partition", "entropy", "merged_argmax", "merged_entropy"]
