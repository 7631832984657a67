"""The clients of a run: producers, readers and group members, each a process of its own."""

from urteil.harness.workload.tail import Progress
from urteil.harness.workload.workload import FinalReads, Workload

__all__ = ["FinalReads", "Progress", "Workload"]
