"""Faults that end, stop or add clients."""
