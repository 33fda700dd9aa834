"""An asynchronous network in virtual time: events instead of rounds, no waiting."""
