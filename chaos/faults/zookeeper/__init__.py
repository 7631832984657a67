"""Faults that act on ZooKeeper's znodes and sessions."""
