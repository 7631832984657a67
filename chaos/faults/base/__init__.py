"""What faults share: the base classes, and the steps of several faults."""
