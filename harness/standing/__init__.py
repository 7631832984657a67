"""Standing clusters: each runs until it is taken down, in a process of its own."""

from urteil.harness.standing.lifecycle import (
    NAME,
    BadRequest,
    StandingError,
    attach,
    down,
    faults_on,
    start,
    status,
    status_of_all,
    up,
)
from urteil.harness.standing.state_file import StandingCluster, StandingRequest

__all__ = [
    "NAME",
    "BadRequest",
    "StandingCluster",
    "StandingError",
    "StandingRequest",
    "attach",
    "down",
    "faults_on",
    "start",
    "status",
    "status_of_all",
    "up",
]
