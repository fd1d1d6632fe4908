"""Rules: how one action is chosen from a policy's distribution."""

from gapfloor.rules.rule import Rule, draw_from, parse_rule, parse_rules, rule_forms, rule_kind, softmax
from gapfloor.rules.standard import Epsilon, Greedy, Merged, Own, Sampled, Temperature

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
