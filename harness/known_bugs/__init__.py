"""Bugs that others published: what clients saw of them, and the releases that have them."""
