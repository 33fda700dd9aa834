"""Served to one's own machine over HTTP: who may ask, where to listen, how to serve."""
