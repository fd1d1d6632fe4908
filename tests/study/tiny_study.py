"""The smallest study that trains, evaluates, replays and reports on the real engine."""

STUDY = """
name = "tiny"
train = "0:10"
test = "100:110"
formats = ["md", "html"]

[[runs]]
games = ["bossfight"]
encoders = ["impala"]
seeds = [1]
steps = 512
environments = 2

[evaluation]
draws = [0]
episodes = 8
slots = 4
batch = 8
probe = 8

[addendum]
rules = ["merged"]
"""
