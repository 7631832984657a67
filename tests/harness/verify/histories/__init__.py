"""Generated histories: a model of a correct log in all its nuances, and damage to what it wrote."""
