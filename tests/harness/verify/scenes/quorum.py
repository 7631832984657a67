"""Scenes of the quorum's metadata log: three copies, and the records that the lab saw committed."""

from __future__ import annotations

import json

from tests.harness.verify.scenes.scene import Draw, S, Scene

CONTROLLERS = (1, 2, 3)
SEEN = -1


def draw_metadata_logs(scene: Scene) -> None:
    """Batches of two epochs; some copies lack or change some, some begin with a snapshot, and some
    batches begin an epoch."""
    pick = scene.random.choice
    voters = {holder: pick((None, True, True, False)) for holder in CONTROLLERS}
    starts = {holder: pick((None, 0, 0, scene.number * 10 + 2)) for holder in CONTROLLERS}
    for number in range(6):
        base, epoch = scene.number * 10 + number, scene.number * 10 + 2 * (number // 3)
        for holder in (*CONTROLLERS, SEEN):
            if not scene.chance(0.85):
                continue
            scene.add(
                "metadata_logs", broker=holder, base=base, last=base,
                epoch=epoch + pick((*[0] * 15, 1)), size=70, crc=pick((*[5] * 20, 6)),
                leader=pick((*[1] * 8, 2)) if not number % 3 else None, at_ns=number * S,
                start=starts.get(holder), is_voter=voters.get(holder),
                changed_voters=pick((*[None] * 8, 0, 1, 2)),
            )  # fmt: skip


def draw_votes(scene: Scene) -> None:
    """Versions of three files, and the votes that leaders of three epochs list."""
    pick = scene.random.choice
    first = 10 * scene.number
    for position in range(12):
        scene.add(
            "votes", broker=pick(CONTROLLERS), epoch=first + pick((position // 4, 1)),
            candidate=pick((None, None, 1, 2)), leader=pick((None, 1, 1, 1, 2)), voters=None,
            position=100 * scene.number + position, at_ns=position * S,
            directory=pick((None, None, "new")),
        )  # fmt: skip
    for number in range(3):
        for voter in CONTROLLERS:
            if scene.chance(0.6):
                scene.add(
                    "votes", broker=voter, epoch=first + number, voters=3, position=number,
                    candidate=pick((None, 1, 1, 1)), leader=1, at_ns=number * S,
                )  # fmt: skip


def draw_fencing(scene: Scene) -> None:
    """Three brokers that are fenced and return, and versions that name some of them."""
    pick = scene.random.choice
    brokers = [10 * scene.number + n for n in (1, 2, 3)]
    scene.add("metadata_logs", broker=1, base=10**6 + scene.number, last=10**6, epoch=10**6,
              size=70, crc=5, leader=None, at_ns=0)  # fmt: skip
    zxid = 1000 * scene.number
    for broker in brokers:
        at_ns = 0
        for number in range(3):
            at_ns += pick((0, 2, 3, 5)) * S
            scene.add("states", path=f"/brokers/ids/{broker}", version=pick((0, -1)),
                      zxid=zxid + number, at_ns=at_ns)  # fmt: skip
    scene.part(led=False)
    for version in range(4):
        isr = [broker for broker in brokers if scene.chance(0.6)]
        scene.reign(0, zxid=zxid + 10 + version, at_ns=pick((2, 3)) * version * S,
                    version=version, leader=pick((-1, *brokers)), leader_epoch=version,
                    isr=json.dumps(isr))  # fmt: skip
    scene.spans()
    for span in scene.tables["state_spans"]:
        span["isr"] = "," + "".join(f"{broker}," for broker in json.loads(span["isr"]))


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_metadata_logs: ("quorum_log",),
    draw_votes: ("quorum_votes",),
    draw_fencing: ("fenced_member",),
}
