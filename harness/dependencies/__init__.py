"""Dependencies: programs of others that the lab runs on, kept once a machine in the
user's cache."""
