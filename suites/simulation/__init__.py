"""Brokers, a model of ZooKeeper and clients in one process on virtual time."""
