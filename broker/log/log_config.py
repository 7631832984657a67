"""Topic-level settings, with Kafka's names, defaults and broker-level synonyms (TopicConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from urteil.broker.wire.compression import Compression

_FOREVER = 2**63 - 1
_CODECS = {
    "uncompressed": Compression.NONE, "gzip": Compression.GZIP, "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4, "zstd": Compression.ZSTD,
}  # fmt: skip


def _setting(default: Any, *synonyms: str) -> Any:
    """A field whose broker property is one of `synonyms`, or its own dotted name."""
    return field(default=default, metadata={"synonyms": synonyms})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings of one topic's logs. Sizes in bytes, times in ms; -1 means unlimited."""

    cleanup_policy: str = _setting("delete", "log.cleanup.policy")
    compression_gzip_level: int = _setting(-1, "compression.gzip.level")
    compression_lz4_level: int = _setting(9, "compression.lz4.level")
    compression_type: str = _setting("producer", "compression.type")
    compression_zstd_level: int = _setting(3, "compression.zstd.level")
    delete_retention_ms: int = _setting(86_400_000, "log.cleaner.delete.retention.ms")
    file_delete_delay_ms: int = _setting(60_000, "log.segment.delete.delay.ms")
    follower_replication_throttled_replicas: str = _setting("")
    flush_messages: int = _setting(_FOREVER, "log.flush.interval.messages")
    flush_ms: int = _setting(_FOREVER, "log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    index_interval_bytes: int = _setting(4096, "log.index.interval.bytes")
    leader_replication_throttled_replicas: str = _setting("")
    max_compaction_lag_ms: int = _setting(_FOREVER, "log.cleaner.max.compaction.lag.ms")
    max_message_bytes: int = _setting(1_048_588, "message.max.bytes")
    message_downconversion_enable: bool = _setting(True, "log.message.downconversion.enable")
    message_timestamp_after_max_ms: int = _setting(_FOREVER, "log.message.timestamp.after.max.ms")
    message_timestamp_before_max_ms: int = _setting(_FOREVER, "log.message.timestamp.before.max.ms")
    message_timestamp_difference_max_ms: int = _setting(
        _FOREVER, "log.message.timestamp.difference.max.ms"
    )
    message_timestamp_type: str = _setting("CreateTime", "log.message.timestamp.type")
    min_cleanable_dirty_ratio: float = _setting(0.5, "log.cleaner.min.cleanable.ratio")
    min_compaction_lag_ms: int = _setting(0, "log.cleaner.min.compaction.lag.ms")
    min_insync_replicas: int = _setting(1, "min.insync.replicas")
    preallocate: bool = _setting(False, "log.preallocate")
    retention_bytes: int = _setting(-1, "log.retention.bytes")
    retention_ms: int = _setting(604_800_000, "log.retention.ms")
    segment_bytes: int = _setting(1_073_741_824, "log.segment.bytes")
    segment_index_bytes: int = _setting(10_485_760, "log.index.size.max.bytes")
    segment_jitter_ms: int = _setting(0, "log.roll.jitter.ms")
    segment_ms: int = _setting(604_800_000, "log.roll.ms")
    unclean_leader_election_enable: bool = _setting(False, "unclean.leader.election.enable")

    # A setting of the broker alone; topics cannot override it.
    producer_id_expiration_ms: int = _setting(86_400_000, "producer.id.expiration.ms")

    @property
    def preallocated_bytes(self) -> int:
        """The initial file size of a new segment (`LogConfig.initFileSize`)."""
        return self.segment_bytes if self.preallocate else 0

    @property
    def deletes(self) -> bool:
        """Whether retention by time and size applies."""
        return "delete" in self.cleanup_policy.split(",")

    @property
    def compacts(self) -> bool:
        """Whether the log keeps the latest value of every key."""
        return "compact" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled; a compaction deadline may lower it."""
        if self.compacts and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def log_append_time(self) -> bool:
        """Whether the broker stamps the records."""
        return self.message_timestamp_type == "LogAppendTime"

    def codec_for(self, sent: int) -> int:
        """The codec in which the log stores a batch that was sent in codec `sent`."""
        if self.compression_type == "producer":
            return sent
        return _CODECS[self.compression_type]

    def level_of(self, codec: int) -> int | None:
        """The compression level that the topic sets for a codec; None for the codec's default."""
        if self.compression_type == "producer":
            return None
        return {
            Compression.GZIP: self.compression_gzip_level,
            Compression.LZ4: self.compression_lz4_level,
            Compression.ZSTD: self.compression_zstd_level,
        }.get(Compression(codec))

    @property
    def timestamp_before_ms(self) -> int:
        """How far a record's time may lie in the past (KIP-937, else the deprecated setting)."""
        if self.message_timestamp_before_max_ms != _FOREVER:
            return self.message_timestamp_before_max_ms
        return self.message_timestamp_difference_max_ms

    @property
    def timestamp_after_ms(self) -> int:
        """How far a record's time may lie in the future."""
        if self.message_timestamp_after_max_ms != _FOREVER:
            return self.message_timestamp_after_max_ms
        return self.message_timestamp_difference_max_ms

    @classmethod
    def from_properties(
        cls, broker_props: Mapping[str, str], topic_overrides: Mapping[str, str] | None = None
    ) -> LogConfig:
        """Settings of a topic: its overrides, else the broker's properties, else defaults.

        Unknown names are ignored; the API validates them. Raises ValueError, naming the property,
        for a malformed value.
        """
        overrides = topic_overrides or {}
        values: dict[str, Any] = {}
        for item in fields(cls):
            name = item.name.replace("_", ".")
            if name in overrides and item.name != "producer_id_expiration_ms":
                values[item.name] = _parse(name, overrides[name], item.default)
                continue
            for synonym in item.metadata["synonyms"]:
                if broker_props.get(synonym) not in (None, ""):
                    values[item.name] = _parse(synonym, broker_props[synonym], item.default)
                    break
            else:
                _apply_coarser(item.name, broker_props, values)
        codec = values.get("compression_type", "producer")
        if codec != "producer" and codec not in _CODECS:
            known = ", ".join((*_CODECS, "producer"))
            raise ValueError(
                f"Invalid value {codec} for configuration compression.type: not one of {known}"
            )
        return cls(**values)


# Broker properties in coarser units, used when the one in ms is absent.
_COARSER = {
    "retention_ms": (("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "segment_ms": (("log.roll.hours", 3_600_000),),
    "segment_jitter_ms": (("log.roll.jitter.hours", 3_600_000),),
}


def _apply_coarser(name: str, broker_props: Mapping[str, str], values: dict[str, Any]) -> None:
    for synonym, factor in _COARSER.get(name, ()):
        raw = broker_props.get(synonym)
        if raw not in (None, ""):
            amount = _parse(synonym, raw, 0)
            values[name] = amount * factor if amount >= 0 else -1
            return


def _parse(name: str, raw: str | None, default: Any) -> Any:
    text = (raw or "").strip()
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(f"Invalid value {text} for configuration {name}: not a boolean")
        return text.lower() == "true"
    if isinstance(default, str):
        return ",".join(part.strip() for part in text.split(","))
    try:
        return type(default)(text)
    except ValueError:
        raise ValueError(f"Invalid value {text} for configuration {name}: not a number") from None
