"""The local HTTP API for the application beside the peer, and its Prometheus metrics."""
