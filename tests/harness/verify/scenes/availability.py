"""Scenes of partitions that must acknowledge, and of records that must be delivered."""

from __future__ import annotations

from tests.harness.verify.scenes.scene import Draw, S, Scene


def draw_sends(scene: Scene) -> None:
    """Producers before, in and after a fault, of which some wait for their answers."""
    pick = scene.random.choice
    scene.part()
    clients = [scene.name(kind) for kind in ("a", "b", "t")]
    for client in clients:
        scene.add(
            "clients", client=client, session=0, kind=pick((*["producer"] * 5, "raw")),
            transactional_id=client if "t" in client else None, end_ns=pick((60, 60, 20)) * S,
        )  # fmt: skip
    if scene.chance(0.3):
        scene.add("killed", client=clients[0])
    for number, at_ns in enumerate(scene.times(pick((4, 7)), 0, pick((12, 14, 30)))):
        outcome = pick(("ok", "info", "info", "fail"))
        error = pick(("made up", "MESSAGE_TOO_LARGE")) if outcome == "fail" else None
        is_done = outcome != "info" or scene.chance(0.3)
        scene.add(
            "sends", **scene.place(), partition_intended=0, client=pick(clients), session=0,
            op=number, value_id=f"{scene.name('v')}/{number}", invoke_ns=at_ns, outcome=outcome,
            complete_ns=at_ns + pick((1, 10)) * S if is_done else None, acks=-1, error=error,
            offset=number if outcome == "ok" else None,
        )  # fmt: skip
    times = {"from_ns": pick((12, 14)) * S, "to_ns": pick((15, 30)) * S}
    fault = {"p": scene.p(), "fault": "crash", "targets": '["b1"]'}
    scene.add("progress_in_faults", n=scene.number, begin_ns=10 * S, **fault, **times)
    scene.add("progress_after_faults", in_sync_ns=11 * S, **fault, **times)
    scene.add("progress_without_faults", p=scene.p(), bound_ns=pick((2, 8)) * S, **times)
    scene.add(
        "transaction_progress", grp=scene.name("g"), failed=pick((2, 4, 6)),
        succeeded=pick((0, 0, 1)), clients=pick((1, 2)), **times,
    )  # fmt: skip


def draw_waiting(scene: Scene) -> None:
    """Acknowledged records, and the intervals in which readers got none of them."""
    pick = scene.random.choice
    scene.part()
    for number, at_ns in enumerate(scene.times(6, 0, 20)):
        outcome, offset = pick(("ok", "ok", "ok", "info")), number
        value = f"{scene.name('v')}/{number}"
        scene.add(
            "sends", **scene.place(), partition_intended=0, client=scene.name("a"), session=0,
            op=number, value_id=value, invoke_ns=at_ns, complete_ns=at_ns + S, outcome=outcome,
            acks=pick((-1, -1, 1)), offset=offset if outcome == "ok" else None,
        )  # fmt: skip
        for broker in (1, 2):
            if scene.chance(0.9):
                scene.add(
                    "replicas", **scene.place(), broker=broker, value_id=value, leader_epoch=0,
                    offset=offset + (10 if scene.chance(0.1) else 0), batch_base=offset,
                    batch_crc=1,
                )  # fmt: skip
    for n, kind in enumerate(("group", "consumer", "final reader")):
        scene.add(
            "undisturbed_intervals", n=n, name=scene.name(kind), kind=kind, p=scene.p(),
            from_ns=pick((5, 10)) * S, to_ns=pick((20, 25)) * S, bound_ns=pick((5, 12)) * S,
            reached=pick((0, 3, 5)), progressed=0, recent_progress=pick((0, 0, 1)),
            polled=pick((0, 1, 1)),
        )  # fmt: skip


def draw_reader(scene: Scene) -> None:
    """A reader that gets records of two partitions sooner or later after their
    acknowledgements."""
    pick = scene.random.choice
    session = {"client": scene.name("c"), "session": 0}
    for n in (0, 1):
        scene.part(n)
        for number, at_ns in enumerate(scene.times(6, 5, 20)):
            scene.send(
                n, number, f"{scene.name('v')}/{n}/{number}", at_ns - S, acks=pick((-1, -1, -1, 1)),
                complete_ns=at_ns, outcome=pick(("ok", "ok", "ok", "info")),
                txn=pick((None, None, None, 1)),
            )  # fmt: skip
            delay_ns = pick((0, 0, 0, 1, 2, 9)) * S // 10 + 1
            scene.add(
                "polls", **scene.place(n), **session, poll=2 * number + pick((0, n)),
                invoke_ns=at_ns, complete_ns=at_ns + delay_ns, outcome=pick(("ok", "ok", "fail")),
                position_before=number, position_after=number + 1,
                event=pick((None, None, None, "reset")),
            )  # fmt: skip
        scene.add("prompt_reads", **session, p=scene.p(n), from_ns=pick((5, 8)) * S,
                  to_ns=pick((12, 20)) * S, late_ns=2 * S // 10, min_count=3)  # fmt: skip


def draw_producer(scene: Scene) -> None:
    """A producer whose sends to two partitions are acknowledged sooner or later."""
    pick = scene.random.choice
    session = {"client": scene.name("c"), "session": 0}
    for n in (0, 1):
        scene.part(n)
        for number, at_ns in enumerate(scene.times(7, 5, 20)):
            scene.send(
                n, number, f"{scene.name('v')}/{n}/{number}", at_ns, **session,
                acks=pick((-1, -1, -1, 1)), outcome=pick(("ok", "ok", "ok", "info")),
                complete_ns=at_ns + pick((1, 1, 1, 2, 12, 40)) * S // 10,
                txn=pick((None, None, None, 1)),
            )  # fmt: skip
        scene.add("prompt_sends", **session, p=scene.p(n), from_ns=pick((5, 8)) * S,
                  to_ns=pick((12, 20)) * S, late_ns=S // 2, min_count=3)  # fmt: skip


def draw_stall(scene: Scene) -> None:
    """Producers that try while a partition acknowledges something at times."""
    pick = scene.random.choice
    scene.part()
    clients = [scene.name(kind) for kind in ("a", "b", "c")]
    for client in clients:
        scene.add(
            "clients", client=client, session=0, kind=pick((*["producer"] * 5, "raw")),
            transactional_id=pick((None, None, None, client)), end_ns=pick((60, 60, 20)) * S,
        )  # fmt: skip
    if scene.chance(0.3):
        scene.add("killed", client=clients[0])
    for number, at_ns in enumerate(scene.times(7, 0, 20)):
        outcome = pick(("ok", "info", "info", "info", "fail"))
        is_done = outcome != "info" or scene.chance(0.3)
        scene.add(
            "sends", **scene.place(), partition_intended=0, client=pick(clients), session=0,
            op=number, value_id=f"{scene.name('v')}/{number}", invoke_ns=at_ns, outcome=outcome,
            complete_ns=at_ns + pick((1, 1, 6)) * S if is_done else None, acks=-1,
            error=pick(("made up", "MESSAGE_TOO_LARGE")) if outcome == "fail" else None,
            offset=number if outcome == "ok" else None,
        )  # fmt: skip
    for begin_s in (2, 12):
        scene.add(
            "writable_intervals", p=scene.p(), from_ns=pick((begin_s, begin_s + 3)) * S,
            to_ns=(begin_s + pick((7, 10))) * S, bound_ns=pick((2, 4)) * S, leader=1, wall_clock=0,
        )  # fmt: skip


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_sends: ("no_progress",),
    draw_waiting: ("no_delivery",),
    draw_reader: ("slow_fetch",),
    draw_producer: ("slow_acknowledgement",),
    draw_stall: ("stalled_partition", "stalled_producer"),
}
