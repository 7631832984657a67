"""Scenes of a log: lookups by time, retention, losses, and the ends of transactions."""

from __future__ import annotations

from tests.harness.verify.scenes.scene import END_NS, Draw, S, Scene

MS = 1_000_000


def draw_lookups(scene: Scene) -> None:
    """Records with timestamps, and the brokers' responses to lookups."""
    pick = scene.random.choice
    compacted = int(scene.chance(0.3))
    scene.part(
        led=False, compacted=compacted, append_time=int(scene.chance(0.3)),
        clock_moved=int(scene.chance(0.2)), log_start=pick((0, 0, 0, 2)),
        cut_end=pick((None, None, None, 2)), max_start=pick((0, 1)), has_log=int(scene.chance(0.9)),
    )  # fmt: skip
    scene.reign(0, zxid=2 * scene.number, at_ns=0, leader=2)
    scene.reign(0, zxid=2 * scene.number + 1, at_ns=8 * S, version=1, leader_epoch=1)
    scene.spans()
    for broker in (1, 2):
        scene.log(broker, 12)
    for number, at_ns in enumerate(scene.times(6, 0, 12)):
        value, at_ms = f"{scene.name('v')}/{number}", 500 * number + pick((0, 0, 0, -700, 700))
        scene.send(0, number, value, at_ns, timestamp_ms=at_ms, acks=pick((-1, -1, 1)),
                   outcome=pick(("ok", "ok", "info")))  # fmt: skip
        scene.lie(0, value, number, timestamp_ms=pick((at_ms, at_ms, at_ms, None)),
                  leader_epoch=int(number > 2), control=pick((*[None] * 9, "commit")))  # fmt: skip
    scene.cover(0, [])
    for at_ns in scene.times(6, 5, 20):
        kind, error = pick(("time", "time", "max")), pick((*[None] * 9, "made up"))
        requested_ms = pick((0, 500, 1000, 1300, 2500, 9000))
        offset = pick((-1, *range(7)))
        is_found = offset >= 0 and scene.chance(0.9)
        scene.add(
            "answers", p=scene.p(), node=pick((1, 2)), invoke_ns=at_ns, kind=kind, error=error,
            complete_ns=at_ns + S // 10, requested_ms=requested_ms if kind == "time" else None,
            answered_ms=500 * offset + pick((0, 0, 700)) if is_found else None, offset=offset,
            leader_epoch=pick((-1, int(offset > 2), int(offset > 2), 5)),
            api_version=pick((4, 5, 7)),
        )  # fmt: skip


def draw_retention(scene: Scene) -> None:
    """Segments of which some are old, a log that may be large or dirty, and a shorter retention."""
    pick = scene.random.choice
    if not scene.number:
        scene.add("settings", in_flight=1, ordered=0, wall_ns=scene.run.choice((0, 0, 0, None)))
    short = {"short_ns": 2 * S, "short_segment_ns": S, "short_from_ns": pick((0, 5)) * S,
             "short_until_ns": pick((20, 60)) * S}  # fmt: skip
    scene.part(
        compacted=int(scene.chance(0.3)), dirty_ratio=pick((None, 0.01, 0.4, 0.9)),
        min_lag_ns=pick((0, 0, 20)) * S, deletes=int(scene.chance(0.5)),
        gone=int(scene.chance(0.1)), trimmed=int(scene.chance(0.1)),
        clock_moved=int(scene.chance(0.1)), ends_ns=60 * S,
        late_ns=pick((S, S, S, None)), retention_configured=int(scene.chance(0.8)),
        retention_ns=pick((10, 30, 100)) * S, retention_bytes=pick((None, -1, 100, 200)),
        active_base=20, calm_ns=pick((0, 0, 57)) * S,
        **(short if scene.chance(0.6) else {}),
    )  # fmt: skip
    has_txns = scene.chance(0.1)
    for number, at_ns in enumerate(scene.times(9, 0, 60)):
        value, offset = f"{scene.name('v')}/{number}", 3 * number
        stamped_ms = at_ns // MS if scene.chance(0.8) else pick((-1, 0, 45_000))
        scene.send(0, offset, value, at_ns, outcome=pick(("ok", "ok", "ok", "info")),
                   acks=pick((-1, -1, 1)), timestamp_ms=stamped_ms)  # fmt: skip
        scene.lie(0, value, offset, timestamp_ms=stamped_ms, segment_base=offset // 10 * 10,
                  batch_base=offset, batch_bytes=pick((40, 80, 120)), key=pick("abcde"),
                  transactional=has_txns)  # fmt: skip
    for at_ns in scene.times(4, 0, 60):
        scene.add(
            "answers", p=scene.p(), node=pick((1, 2)), invoke_ns=at_ns, complete_ns=at_ns + S,
            kind=pick(("earliest", "earliest", "latest")), error=pick((*[None] * 9, "made up")),
            offset=pick((0, 3, 9, 15)),
        )  # fmt: skip


def draw_ends(scene: Scene) -> None:
    """Transactions of one producer, their markers, and questions after all timeouts."""
    pick, over_ns = scene.random.choice, 50 * S
    if not scene.number:
        scene.add("settings", in_flight=1, ordered=0,
                  txns_over_ns=None if scene.run.random() < 0.1 else over_ns)  # fmt: skip
    scene.part(clock_moved=int(scene.chance(0.2)), log_start=pick((0, 0, 2)),
               delete_retention_ns=pick((S, END_NS + 30 * S)))  # fmt: skip
    for broker in (1, 2):
        scene.log(broker, 30)
    tid, offset = scene.name("t"), 0
    for txn, begin_ns in enumerate(scene.times(4, 0, 40)):
        session = {"client": scene.name("a"), "session": 0, "txn": txn}
        is_late, fate = scene.chance(0.1), pick(("committed", "aborted"))
        scene.add("txns", **session, outcome=fate, begin_ns=begin_ns, transactional_id=tid,
                  commit_invoke_ns=None, late_end_ns=1 if is_late else None)  # fmt: skip
        scene.add("txn_p", **session, tid=tid, fate=fate, outcome=fate, begin_ns=begin_ns,
                  end_ns=begin_ns + S, late=int(is_late),
                  early_abort=pick((*[0] * 9, 1, 2)))  # fmt: skip
        for _ in range(pick((1, 2))):
            value = f"{scene.name('v')}/{offset}"
            scene.send(0, offset, value, begin_ns, txn=txn, op=offset,
                       outcome=pick(("ok", "ok", "ok", "info")))  # fmt: skip
            scene.lie(0, value, offset, transactional=True, share=0.8,
                      producer_id=pick((*[scene.number] * 9, 9999)))  # fmt: skip
            offset += 1
        scene.lie(0, None, offset, control="commit", transactional=True, share=0.7,
                  producer_id=scene.number)  # fmt: skip
        offset += 1
    for at_ns in scene.times(4, 20, 80):
        scene.add(
            "answers", p=scene.p(), node=1, invoke_ns=at_ns, complete_ns=at_ns + S,
            kind=pick(("stable", "latest")), error=pick((*[None] * 9, "made up")),
            offset=pick((-1, 3, 6, 9)),
        )  # fmt: skip
        scene.add("admin_ops", act=pick(("initialise", "initialise", "other")), subject=tid,
                  outcome=pick(("ok", "fail", "info")), invoke_ns=at_ns,
                  complete_ns=at_ns + S)  # fmt: skip


def draw_losses(scene: Scene) -> None:
    """Records of which some are lost, beside the floors of unclean elections."""
    pick = scene.random.choice
    scene.part(unclean_on=int(scene.chance(0.9)), unclean_floor=pick((2, 4, 200)),
               losses_ns=pick((None, 5 * S, 20 * S)), compacted=int(scene.chance(0.1)),
               log_start=pick((0, 0, 1)))  # fmt: skip
    for broker in (1, 2):
        scene.log(broker, 30)
    scene.add("floors", p=scene.p(), from_ns=0, to_ns=6 * S, leader=1, any_floor=3,
              unclean_floor=pick((3, 4)))  # fmt: skip
    if scene.chance(0.8):
        scene.add("floors", p=scene.p(), from_ns=6 * S, to_ns=END_NS, leader=2, any_floor=5,
                  unclean_floor=pick((None, 5, 6)))  # fmt: skip
    for number, at_ns in enumerate(scene.times(8, 0, 12)):
        value, outcome = f"{scene.name('v')}/{number}", pick(("ok", "ok", "ok", "info", "fail"))
        scene.send(0, number, value, at_ns, acks=pick((-1, -1, 1)), outcome=outcome,
                   node=pick((None, 1, 2)))  # fmt: skip
        scene.lie(0, value, number, share=0.5)
        if scene.chance(0.3):
            scene.add("reads", **scene.place(), client=scene.name("c"), session=0, poll=number,
                      offset=number, value_id=value, read_ns=at_ns + S, **{"pass": 0})  # fmt: skip
    scene.cover(0, [])


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_lookups: ("time_index_wrong",),
    draw_retention: ("kept_too_long",),
    draw_ends: ("hanging_txn",),
    draw_losses: ("loss_not_a_suffix",),
}
