"""Produce and fetch: record sizes x partitions, and compression."""

from __future__ import annotations

from statistics import median

from load_tools import Load

PARTITIONS = (1, 8, 64)
BYTES_A_FIGURE = 60_000_000
MOST_RECORDS = 300_000
WARM_UP_RECORDS = 20_000
FETCHES = 5  # each takes half a second or less, too short to distinguish one fetch from noise
PLAIN = [(size, partitions, "none") for size in (100, 10_000) for partitions in PARTITIONS]
COMPRESSED = [(1000, 8, codec) for codec in ("lz4", "zstd")]
KINDS = {f"{size}b_{parts}p_{codec}": (size, parts, codec)
         for size, parts, codec in PLAIN + COMPRESSED}  # fmt: skip


def _title(size: int, partitions: int, codec: str) -> str:
    what = {100: "100 B", 1000: "1 KB", 10_000: "10 KB"}[size]
    packed = "" if codec == "none" else f", {codec}"
    return f"{what}, {partitions} partition{'s' * (partitions > 1)} x 3 replicas{packed}"


ROWS = {
    f"{verb}_{key}_{unit}": f"{verb} {_title(*kind)} ({shown})"
    for verb, unit, shown in (
        ("produce", "per_s", "records/s, acks=all"),
        ("fetch", "mb_per_s", f"MB/s, median of {FETCHES}"),
    )
    for key, kind in KINDS.items()
}


def measure(load: Load, scale: float) -> dict[str, float]:
    """One topic for each kind, produced with acks=all, then fetched completely FETCHES times."""
    figures = {}
    load.create("warm", 8, 3)
    load.produce("warm", acks="all", records=WARM_UP_RECORDS, size=1000)
    for key, (size, partitions, codec) in KINDS.items():
        records = int(min(BYTES_A_FIGURE // size, MOST_RECORDS) * scale)
        load.create(key, partitions, 3)
        produced = load.produce(key, acks="all", records=records, size=size, compression=codec)
        figures[f"produce_{key}_per_s"] = produced.records_per_s
        fetched = [load.consume(key, records) for _ in range(FETCHES)]
        figures[f"fetch_{key}_mb_per_s"] = median(fetched)
    return figures
