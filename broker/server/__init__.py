"""Sockets, delayed operations, configuration, and the broker that wires the rooms together."""
