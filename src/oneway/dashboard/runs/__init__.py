"""The page of stored runs: list them, compare their curves, open one."""
