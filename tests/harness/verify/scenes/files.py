"""Scenes of files on brokers' disks: indexes and segments."""

from __future__ import annotations

from itertools import product

from tests.harness.verify.scenes.scene import Draw, Scene


def draw_indexes(scene: Scene) -> None:
    """Entries of the indexes of two segments on two brokers."""
    scene.part()
    pick = scene.random.choice
    for broker in (1, 2):
        if scene.chance(0.9):
            scene.log(broker, pick((4, 8, 12)))
    files = [*product((1, 2), (0, 8), ("offset", "time", "txn"))]
    for broker, base, kind in scene.random.sample(files, 3):
        offset = base
        for entry in range(pick((1, 2, 3))):
            offset = max(0, offset + pick((-1, 0, 1, 2, 3)))
            there = pick((None, "abort", "commit")) if kind == "txn" else pick((None, *"bbb"))
            is_there = there is not None
            scene.add(
                "indexes", **scene.place(), broker=broker, segment_base=base, kind=kind,
                entry=entry, offset=offset, position=entry, timestamp_ms=pick((1, 2, 3)),
                there=there, there_base=offset + pick((-1, 0, 0, 1)) if is_there else None,
                there_timestamp_ms=pick((1, 2, 3)) if is_there else None,
                before_timestamp_ms=pick((None, 1, 2, 3)),
            )  # fmt: skip


def draw_segments(scene: Scene) -> None:
    """Two segments of a final leader, and one of a follower."""
    pick = scene.random.choice
    scene.part(
        compacted=pick((0, 0, 1)), active_base=10, segment_ms=pick((None, 1000, 5000)),
        segment_bytes=pick((None, 100, 200)), trimmed=int(scene.chance(0.1)),
        clock_moved=int(scene.chance(0.1)), gone=int(scene.chance(0.1)),
    )  # fmt: skip
    for broker, segment in ((1, 0), (1, 10), (2, 0)):
        for batch in range(pick((1, 2, 3))):
            size, base = pick((40, 60, 90, 150)), segment + 2 * batch
            for offset in (base, base + 1):
                at_ms = pick((-1, 0, 2000, 9000, 12_000, 14_000, None))
                scene.add(
                    "replicas", **scene.place(), broker=broker, segment_base=segment,
                    batch_base=base, batch_bytes=size, offset=offset, timestamp_ms=at_ms,
                )  # fmt: skip


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_indexes: ("index_wrong",),
    draw_segments: ("segment_not_rolled",),
}
