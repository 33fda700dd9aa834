"""The page of a lab: real peers that learn, and what one can do to them."""
