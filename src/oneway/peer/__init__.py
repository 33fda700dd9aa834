"""A real peer: one process, its own data and keys, durable state, one-way trust."""
