"""Generated histories: a detailed model of a correct log, and damage to its evidence."""
