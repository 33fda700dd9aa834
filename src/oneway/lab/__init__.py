"""Many real peers on this machine: start them, break them, audit them, compare with the simulator.

Nothing is imported here: every peer of a lab starts through `oneway.lab.child`, and pays for it.
"""
