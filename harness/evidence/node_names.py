"""Names of Kafka's nodes by their ids, for reports."""

from urteil.chaos.topology import node_name

__all__ = ["node_name"]
