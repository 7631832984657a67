"""Why something asked for is not done, as the answer tells it."""

from __future__ import annotations

from dataclasses import dataclass

from urteil.broker.controller.replica_placement import (
    AssignmentError,
    InvalidPartitions,
    InvalidReplicationFactor,
)
from urteil.broker.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ApiError:
    """A Kafka error and its sentence for people."""

    error: ErrorCode
    message: str | None = None


NO_PARTITION = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


class ApiException(Exception):
    """A request that Apache Kafka refuses, with its error and its words."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def impossible(wrong: AssignmentError) -> ApiException:
    """No replicas can be found for what is wanted."""
    match wrong:
        case InvalidPartitions():
            return ApiException(ErrorCode.INVALID_PARTITIONS, str(wrong))
        case InvalidReplicationFactor():
            return ApiException(ErrorCode.INVALID_REPLICATION_FACTOR, str(wrong))
        case _:
            return ApiException(ErrorCode.UNKNOWN_SERVER_ERROR, str(wrong))
