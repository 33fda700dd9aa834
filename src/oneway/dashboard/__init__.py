"""Pages to watch a lab, a peer and stored runs in a browser; no mathematics here."""
