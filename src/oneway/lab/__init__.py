"""Many real peers on this machine: started, broken, observed, audited and simulated."""
