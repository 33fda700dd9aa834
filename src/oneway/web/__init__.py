"""HTTP on one's own machine: access control, sockets, JSON APIs and serving."""
