"""The folder of a peer: what it is told, and the lock of the process that runs it."""
