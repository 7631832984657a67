"""Machines that are reached by ssh: their inventory, an agent on each, and the check of them."""
