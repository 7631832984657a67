"""Faults that act on a node's container."""
