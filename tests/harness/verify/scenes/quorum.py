"""Scenes of the quorum's metadata log: three copies, and what the lab saw committed."""

from __future__ import annotations

from tests.harness.verify.scenes.scene import Draw, S, Scene

CONTROLLERS = (1, 2, 3)
SEEN = -1


def draw_metadata_logs(scene: Scene) -> None:
    """Batches of two epochs; some copies lack or change some, and some batches begin an epoch."""
    pick = scene.random.choice
    for number in range(6):
        base, epoch = scene.number * 10 + number, scene.number * 10 + 2 * (number // 3)
        for holder in (*CONTROLLERS, SEEN):
            if not scene.chance(0.85):
                continue
            scene.add(
                "metadata_logs", broker=holder, base=base, last=base,
                epoch=epoch + pick((*[0] * 15, 1)), size=70, crc=pick((*[5] * 20, 6)),
                leader=pick((*[1] * 8, 2)) if not number % 3 else None, at_ns=number * S,
            )  # fmt: skip


SCENES: dict[Draw, tuple[str, ...]] = {draw_metadata_logs: ("quorum_log",)}
