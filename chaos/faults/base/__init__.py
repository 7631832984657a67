"""Base classes of faults, and the steps that several faults share."""
