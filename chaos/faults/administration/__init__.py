"""Faults that change the cluster as an administrator."""
