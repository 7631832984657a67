"""Scenes of brokers' answers about offsets and leadership."""

from __future__ import annotations

import json

from tests.harness.verify.scenes.scene import Draw, S, Scene


def draw_views(scene: Scene) -> None:
    """Leaders of a partition, and two brokers' responses about it, with a fault and a start."""
    pick, base_ns = scene.random.choice, scene.number * 1000 * S
    scene.part(led=False, gone=int(scene.chance(0.1)), in_run=int(scene.chance(0.9)),
               ends_ns=base_ns + 90 * S)  # fmt: skip
    leaders = ((1, 0), (2, 1), (-1, 2))
    for version, at_s in enumerate(sorted(scene.random.sample(range(0, 60, 10), pick((1, 2))))):
        leader, epoch = leaders[version]
        isr = json.dumps(pick(([1, 2], [1, 2, 3])))
        scene.reign(0, zxid=10 * scene.number + version, at_ns=base_ns + at_s * S, leader=leader,
                    leader_epoch=epoch, version=version, isr=isr)  # fmt: skip
    scene.spans()
    if scene.chance(0.5):
        begin_ns = base_ns + pick((10, 30, 50)) * S
        scene.add("windows", n=scene.number, begin_ns=begin_ns, end_ns=begin_ns + 5 * S,
                  ended_broker=pick((None, 1, 3)))  # fmt: skip
    if scene.chance(0.5):
        scene.add("states", path=f"/brokers/ids/{pick((1, 2))}", version=pick((0, -1)),
                  at_ns=base_ns + pick((10, 40)) * S, zxid=10 * scene.number + 9)  # fmt: skip
    for at_ns in scene.times(6, 0, 100):
        leader, epoch = pick(((1, 0), (2, 1), (1, 1), (-1, 0)))
        scene.add("views", p=scene.p(), broker=pick((1, 2)), at_ns=base_ns + at_ns, leader=leader,
                  leader_epoch=epoch, isr_size=pick((2, 3, None)))  # fmt: skip
    for at_ns in scene.times(6, 0, 100):
        scene.add(
            "answers", p=scene.p(), node=pick((1, 2, -1)), invoke_ns=base_ns + at_ns,
            complete_ns=base_ns + at_ns + pick((0, 1)) * S, offset=0,
            kind=pick(("latest", "time", "epoch", "producer")),
            error=pick((None, None, "NOT_LEADER_OR_FOLLOWER", "NotLeaderError", "6", "made up")),
        )  # fmt: skip


def draw_log_starts(scene: Scene) -> None:
    """A final reader that fetches at the log start it received, again and again."""
    pick = scene.random.choice
    scene.part(gone=int(scene.chance(0.1)))
    session = {"client": scene.name("final"), "session": 0}
    start, begin_ns = pick((5, 6)), pick((0, 10)) * S
    scene.add(
        "passes", **scene.place(), **session, from_offset=start, to_offset=9, begin_ns=begin_ns,
        final=scene.chance(0.9), complete=scene.chance(0.1), **{"pass": 0},
    )  # fmt: skip
    step_ns = pick((9, 10, 11)) * S // 10
    for poll in range(pick((19, 22, 26))):
        is_out = scene.chance(0.97)
        at_ns = 8 * S + poll * step_ns
        scene.add(
            "polls", **scene.place(), **session, poll=poll, invoke_ns=at_ns - 1, complete_ns=at_ns,
            outcome="fail" if is_out else "ok", error="OffsetOutOfRangeError" if is_out else None,
        )  # fmt: skip
    moves = scene.chance(0.2)
    for n in range(pick((9, 14, 25))):
        scene.add(
            "answers", p=scene.p(), node=1, invoke_ns=12 * S + n * S, complete_ns=12 * S + n * S,
            kind="earliest" if scene.chance(0.95) else "latest", error=None,
            offset=6 if moves and n == 5 else 5,
        )  # fmt: skip


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_views: ("disagreement",),
    draw_log_starts: ("wrong_log_start",),
}
