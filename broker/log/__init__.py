"""Storage of partitions: segments, indexes, epochs, producer state, recovery, retention."""
