"""The page of a lab: real peers that learn, and what can be done to them."""
