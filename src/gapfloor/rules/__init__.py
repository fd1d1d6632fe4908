"""Rules: how one action is chosen from a policy's distribution."""
