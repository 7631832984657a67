"""Partitions as leader and follower: fencing, ISR, high watermark, fetchers, replica manager."""
