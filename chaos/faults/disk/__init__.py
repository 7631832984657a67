"""Faults that fill, slow, damage or remove disks."""
