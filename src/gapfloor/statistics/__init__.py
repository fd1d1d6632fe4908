"""Statistics of floors, gaps, rules and agents: arrays in, frozen results out.

The names are imported on first use, so that importing the package does not load scipy.
"""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "FloorComparison": "floor",
    "compare_to_floor": "floor",
    "call_family": "families",
    "holm": "families",
    "make_call": "families",
    "Gap": "gaps",
    "gap": "gaps",
    "combine_fisher": "gaps",
    "combine_stouffer": "gaps",
    "paired_difference": "paired",
    "share_from_training": "paired",
    "normalised_score": "normalised",
    "score_range": "normalised",
    "tier": "screen",
    "sweep_tiers": "screen",
    "entropy_share": "screen",
    "scaled_entropy": "screen",
    "MarginRule": "conventions",
    "sign_flip_test": "signflip",
    "clustered_sem": "clustered",
    "level_matrix": "clustered",
    "crossed_mean": "clustered",
    "crossed_gap": "clustered",
    "level_variance_share": "clustered",
    "random_effects_mean": "random_effects",
    "minimum_detectable_effect": "power",
    "equivalence_unreachable": "power",
    "interquartile_mean": "aggregate",
    "probability_of_improvement": "aggregate",
    "performance_profile": "aggregate",
    "required_runs": "power",
    "required_floor_episodes": "power",
    "compare_to_reference": "reference_calls",
    "compare_strata_to_reference": "reference_calls",
    "call_reference_family": "reference_calls",
    "holm_divisors": "reference_calls",
    "family_shape": "run_shape",
    "excess_gap": "gap_calls",
    "call_gap_family": "gap_calls",
    "nominal_levels": "sequential",
    "sequential_p": "sequential",
    "next_runs": "looks",
    "comparison_power": "power",
    "smallest_design": "power",
    "equivalence_power": "power",
    "floor_episodes_for_equivalence": "power",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
