"""Rules: how one action is chosen from a policy's distribution."""

from gapfloor.rules.rule import (
    Epsilon,
    Greedy,
    Merged,
    Own,
    Rule,
    Sampled,
    Temperature,
    draw_from,
    parse_rule,
    parse_rules,
    rule_forms,
    rule_kind,
    softmax,
)

__all__ = [
    "Epsilon",
    "Greedy",
    "Merged",
    "Own",
    "Rule",
    "Sampled",
    "Temperature",
    "draw_from",
    "parse_rule",
    "parse_rules",
    "rule_forms",
    "rule_kind",
    "softmax",
]
