"""What everybody learns together: the shared task.toml, and a peer's samples in its terms."""
