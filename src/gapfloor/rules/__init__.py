"""Rules: how one action is chosen from a policy's distribution."""

from gapfloor.rules.rule import Epsilon, Greedy, Rule, Sampled, Temperature, parse_rule, parse_rules

__all__ = ["Epsilon", "Greedy", "Rule", "Sampled", "Temperature", "parse_rule", "parse_rules"]
