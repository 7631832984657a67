"""Errors of administrative requests: a Kafka error code with its message."""

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
    """An error code and the message for the client, as a value."""

    error: ErrorCode
    message: str | None = None


NO_PARTITION = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


class ApiException(Exception):
    """Raised for a request that is rejected, with Apache Kafka's error and message."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def assignment_exception(wrong: AssignmentError) -> ApiException:
    """The exception for a placement that is not possible."""
    match wrong:
        case InvalidPartitions():
            return ApiException(ErrorCode.INVALID_PARTITIONS, str(wrong))
        case InvalidReplicationFactor():
            return ApiException(ErrorCode.INVALID_REPLICATION_FACTOR, str(wrong))
        case _:
            return ApiException(ErrorCode.UNKNOWN_SERVER_ERROR, str(wrong))
