"""Public tools to test extensions with: an in-memory transport, and checks for transports."""
