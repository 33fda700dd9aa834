"""A lab in virtual time: the peers' own node, learner, protocol and runtime, and nothing waits."""
