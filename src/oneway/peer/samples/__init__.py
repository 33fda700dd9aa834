"""Where a peer's samples come from: files, growing files, pipes, standard input."""
