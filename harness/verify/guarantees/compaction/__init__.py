"""Compacted topics: the last value of each key stays, at its offset; older values go."""
