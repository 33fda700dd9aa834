"""The page of one's own peer: what it alone can know, a form to predict, and whom it trusts."""
