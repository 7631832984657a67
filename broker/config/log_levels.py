"""Levels of this process's loggers, under Apache Kafka's names for levels (KIP-412).

A change lasts until the process ends; it is stored nowhere.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from urteil.broker.config.incremental_changes import Change, Operation, RejectedChange
from urteil.broker.config.values import parse_int
from urteil.broker.wire.errors import ErrorCode

ROOT = "root"
LEVELS = {"DEBUG": 10, "ERROR": 40, "FATAL": 50, "INFO": 20, "TRACE": 5, "WARN": 30}
"""Python has no level below DEBUG; TRACE shows all."""


EVERYTHING = "kafka"
FAMILIES = {
    "connection": "kafka.network.RequestChannel$",
    "control": "state.change.logger",
    "controller": "kafka.controller",
    "dispatch": "kafka.request.logger",
    "log": "kafka.log",
    "moves": "kafka.controller",
    "topics": "kafka.controller",
    "urteil.broker.log": "kafka.log",
    "urteil.broker.log.cleaner": "kafka.log.LogCleaner",
    "zookeeper": "org.apache.zookeeper",
}
"""Apache Kafka's logger names for our loggers; `kafka` is the parent of all others."""

STRANGERS = ("asyncio", "concurrent.futures", "kazoo")


def join_families() -> None:
    """Make each logger inherit its level from its Apache Kafka name, so that Kafka's names work
    here. Call it once all loggers exist."""
    known = logging.root.manager.loggerDict
    for name, logger in list(known.items()):
        is_ours = name not in STRANGERS and not name.startswith((EVERYTHING, "org."))
        if is_ours and isinstance(logger, logging.Logger) and logger.parent is logging.root:
            logger.parent = logging.getLogger(EVERYTHING)
    for name, family in FAMILIES.items():
        logging.getLogger(name).parent = logging.getLogger(family)


def levels() -> dict[str, str]:
    """Return the effective level of every logger, inherited or its own."""
    known = {
        name: logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger)
    }
    everything: dict[str, logging.Logger] = {ROOT: logging.root, **known}
    return {name: _name_of(logger.getEffectiveLevel()) for name, logger in everything.items()}


def _name_of(level: int) -> str:
    by_level = sorted(LEVELS.items(), key=lambda item: item[1])
    return next((name for name, number in reversed(by_level) if number <= level), "TRACE")


def alter_levels(
    resource_name: str, changes: Iterable[Change], broker_id: int, *, validate_only: bool
) -> None:
    """Set levels or reset them to the inherited ones. Raises RejectedChange before any change is
    made (`RuntimeLoggerManager`)."""
    changes = list(changes)
    check_node(resource_name, broker_id)
    for change in changes:
        _check(change)
    if validate_only:
        return
    for change in changes:
        if change.operation == Operation.SET:
            _logger(change.name).setLevel(LEVELS[change.value or ""])
        else:
            _logger(change.name).setLevel(logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def check_node(name: str, broker_id: int) -> None:
    """Raise RejectedChange unless `name` is this broker."""
    number = parse_int(name)
    if number is None:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        )
    if number != broker_id:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected node id. Expected {broker_id}, but received {name}",
        )


def _check(change: Change) -> None:
    name, operation = change.name, change.operation
    if operation in (Operation.APPEND, Operation.SUBTRACT):
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST,
            f"{Operation(operation).name} operation is not allowed for the BROKER_LOGGER resource",
        )
    if operation not in (Operation.SET, Operation.DELETE):
        raise RejectedChange(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if name not in levels():
        raise RejectedChange(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == Operation.SET and change.value not in LEVELS:
        raise RejectedChange(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(sorted(LEVELS))}",
        )
    if operation == Operation.DELETE and name == ROOT:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed"
        )
