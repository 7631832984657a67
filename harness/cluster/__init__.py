"""A cluster of brokers and ZooKeepers with a proxy a directed link."""

from __future__ import annotations

from urteil.harness.cluster.cluster import Cluster

__all__ = ["Cluster"]
