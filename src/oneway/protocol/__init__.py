"""Push-sum as one peer sees it: a pure state machine whose mass is exact."""
