"""Scenes of a share group: the deliveries of its members, and their acknowledgements."""

from __future__ import annotations

from tests.harness.verify.scenes.scene import Draw, S, Scene

MOST = 3
LOCK_NS = 5 * S
DRAINED_NS = 60 * S


def draw_deliveries(scene: Scene) -> None:
    """Three records that two members receive some times, beside a fault and a change of leader."""
    pick, group = scene.random.choice, scene.name("group")
    scene.part()
    if scene.chance(0.2):
        scene.reign(0, zxid=1000 + scene.number, at_ns=pick((5, 8)) * S, leader_epoch=1)
    scene.spans()
    if scene.number == 0 and scene.chance(0.5):
        scene.add("windows", n=0, begin_ns=7 * S, end_ns=9 * S, ended_broker=pick((None, 1)))
    scene.add("share_partitions", grp=group, p=scene.p(), lock_ns=LOCK_NS,
              unseen_deliveries=pick((0, 0, 1)), delivery_limit=pick((None, *[MOST] * 8)),
              drained_ns=pick((-1, *[DRAINED_NS] * 8)))  # fmt: skip
    for offset in range(3):
        value = f"{scene.name('v')}/{offset}"
        scene.send(0, offset, value, pick((0, 1)) * S)
        scene.lie(0, value, offset, share=0.95)
        for turn in range(pick((0, 1, 1, 2, 3))):
            requested_ns = (2 + 3 * turn + pick((0, 1))) * S
            read_ns = requested_ns + pick((0, 1, 1, 58)) * S
            kind = pick((None, "accept", "release", "release", "reject"))
            invoke_ns = None if kind is None else read_ns + pick((0, 2, 6)) * S
            complete_ns = None if invoke_ns is None else invoke_ns + pick((0, 1)) * S
            scene.add(
                "deliveries", **scene.place(), group=group, client=pick(("s1", "s2")), session=0,
                poll=turn, requested_ns=requested_ns, read_ns=read_ns, offset=offset,
                value_id=value, intact=True, delivery_count=pick((None, 1, 2, MOST, MOST + 1)),
                acknowledgement=kind, invoke_ns=invoke_ns, complete_ns=complete_ns,
                outcome=None if kind is None else pick(("ok", "ok", "ok", "fail", "info")),
            )  # fmt: skip


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_deliveries: (
        *("settled_redelivered", "unsettled_record", "two_holders", "delivery_over_limit"),
    ),
}
