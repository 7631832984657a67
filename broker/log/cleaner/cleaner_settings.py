"""What the cleaner of a broker obeys (Kafka's `CleanerConfig`)."""

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
        """How large one cleaning's offset map may become."""
        return int(self.dedupe_buffer_size * self.load_factor) // max(self.threads, 1)

    @classmethod
    def from_properties(cls, props: Mapping[str, str]) -> CleanerSettings:
        """Raises ValueError for what is no number."""

        def given(name: str, default: float) -> float:
            return float(props.get(f"log.cleaner.{name}") or default)

        usual = cls()
        return cls(
            enabled=(props.get("log.cleaner.enable") or "true").strip().lower() == "true",
            threads=int(given("threads", usual.threads)),
            dedupe_buffer_size=int(given("dedupe.buffer.size", usual.dedupe_buffer_size)),
            load_factor=given("io.buffer.load.factor", usual.load_factor),
            io_max_bytes_per_second=given("io.max.bytes.per.second", usual.io_max_bytes_per_second),
            backoff_ms=int(given("backoff.ms", usual.backoff_ms)),
        )
