"""What a peer will still know after a crash: snapshots in one SQLite file."""
