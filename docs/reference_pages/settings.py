"""The page of settings of the broker and of topics."""

from __future__ import annotations

from collections.abc import Iterable

from docs.reference_pages.markdown import code, codes, page, table
from urteil.broker.config.broker_keys import TABLE
from urteil.broker.config.mutable_keys import DYNAMIC, PER_BROKER
from urteil.broker.config.topic_keys import TABLE as TOPIC_TABLE
from urteil.broker.config.validators import BROKER_CHECKS, TOPIC_CHECKS, Check
from urteil.broker.config.values import ConfigKey, known_keys, rate_keys, topic_keys

ABOUT = """\
Every setting of `server.properties` and of topics that our broker knows, with type, default and
valid values. They are Apache Kafka 3.9's, except `urteil.*`.
[Property files](../broker/properties.md) says which have no effect here and which classes are
accepted, [configuration](../broker/configuration.md) how settings change while the cluster runs.
This page is generated from `broker/config/` by `make docs`."""
OWN = """\
`urteil.hosts.file` is a file in the form of `/etc/hosts` by which the broker resolves names.
`urteil.metrics.listener` is the `HOST:PORT` of its [metrics](../broker/metrics.md)."""
CHANGES = """\
The column *changes* says how a setting changes without a restart: for all brokers or one, or for
one broker only. Without an entry it is read at the start."""
INVALID = {"list": ["?"], "int": -5}


def render() -> dict[str, str]:
    ranges = _ranges(TABLE) | dict.fromkeys(rate_keys(), "0..")
    keys = {name: key for name, key in known_keys().items() if not key.is_internal}
    broker = table(
        ("setting", "type", "default", "valid", "changes"),
        (_broker_row(key, ranges) for _, key in sorted((keys | rate_keys()).items())),
    )
    topic_ranges = _ranges(TOPIC_TABLE)
    topic = table(
        ("setting", "type", "default", "valid", "broker settings that give the default"),
        (
            (*_columns(key, topic_ranges, TOPIC_CHECKS.get(name)), codes(synonyms))
            for name, (key, synonyms) in sorted(topic_keys().items())
        ),
    )
    return {
        "settings.md": page(
            "Settings of the broker", ABOUT, OWN,
            f"## Brokers\n\n{CHANGES}\n\n{broker}", f"## Topics\n\n{topic}",
        )
    }  # fmt: skip


def _ranges(declared: str) -> dict[str, str]:
    lines = (line.split("|") for line in declared.splitlines())
    return {name: limits for name, _, _, limits, *_ in lines}


def _broker_row(key: ConfigKey, ranges: dict[str, str]) -> Iterable[str]:
    changes = ""
    if key.name in DYNAMIC or key.name in rate_keys():
        changes = "one broker" if key.name in PER_BROKER else "all or one"
    return (*_columns(key, ranges, BROKER_CHECKS.get(key.name)), changes)


def _columns(key: ConfigKey, ranges: dict[str, str], check: Check | None) -> tuple[str, ...]:
    default = code(key.default) if key.default else ("" if key.default is None else "empty")
    return code(key.name), key.type, default, _valid(key, ranges.get(key.name, ""), check)


def _valid(key: ConfigKey, limits: str, check: Check | None) -> str:
    """The range, or what the check says of an invalid value."""
    if limits:
        low, _, high = limits.partition("..")
        return (
            f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        )
    complaint = check(INVALID.get(key.type, "?")) if check is not None else None
    if complaint is None:
        return ""
    words = complaint[1].removeprefix("Value must be ").removeprefix("String must be ")
    words = words.removeprefix(f"{key.name} must be ").replace("[", "").replace("]", "")
    return {"Version ? is not a valid version": "a release of Apache Kafka"}.get(words, words)
