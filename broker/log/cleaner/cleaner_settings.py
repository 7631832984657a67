"""The settings of a broker's cleaner (Kafka's `CleanerConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """`log.cleaner.*`: sizes in bytes, times in ms."""

    enabled: bool = True
    threads: int = 1
    dedupe_buffer_size: int = 134_217_728
    load_factor: float = 0.9
    io_max_bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000

    @property
    def map_bytes(self) -> int:
        """The size limit of one cleaning's offset map."""
        return int(self.dedupe_buffer_size * self.load_factor) // max(self.threads, 1)

    @classmethod
    def from_properties(cls, props: Mapping[str, str]) -> CleanerSettings:
        """Parse `log.cleaner.*`. Raises ValueError for a malformed number."""

        def number(name: str, default: float) -> float:
            return float(props.get(f"log.cleaner.{name}") or default)

        default = cls()
        return cls(
            enabled=(props.get("log.cleaner.enable") or "true").strip().lower() == "true",
            threads=int(number("threads", default.threads)),
            dedupe_buffer_size=int(number("dedupe.buffer.size", default.dedupe_buffer_size)),
            load_factor=number("io.buffer.load.factor", default.load_factor),
            io_max_bytes_per_second=number(
                "io.max.bytes.per.second", default.io_max_bytes_per_second
            ),
            backoff_ms=int(number("backoff.ms", default.backoff_ms)),
        )
