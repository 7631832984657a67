"""Standing clusters: each runs until it is taken down, in a process of its own."""

from urteil.harness.standing.lifecycle import (
    NAME,
    BadRequest,
    StandingError,
    attach,
    faults_on,
    start,
    start_usual,
    status,
    status_of_all,
    stop_standing,
)
from urteil.harness.standing.state_file import StandingCluster, StandingRequest

__all__ = [
    "NAME",
    "BadRequest",
    "StandingCluster",
    "StandingError",
    "StandingRequest",
    "attach",
    "faults_on",
    "start",
    "start_usual",
    "status",
    "status_of_all",
    "stop_standing",
]
