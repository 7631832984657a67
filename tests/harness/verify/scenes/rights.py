"""Scenes of answers to one client: rights, quotas, an examiner's questions, an application's
results."""

from __future__ import annotations

from tests.harness.verify.scenes.scene import Draw, S, Scene


def draw_rights(scene: Scene) -> None:
    """Rights that are granted and revoked, and how two brokers answer meanwhile."""
    pick = scene.random.choice
    subjects = [scene.name("read "), scene.name("write ")]
    scene.part(calm_ns=pick((0, 10 * S)))
    for at_ns in scene.times(pick((0, 1, 2, 3)), 0, 20):
        scene.add(
            "admin_ops", act=pick(("grant", "grant", "revoke", "shut down")),
            outcome=pick(("ok", "ok", "ok", "fail", "info")), subject=pick(subjects),
            invoke_ns=at_ns, complete_ns=at_ns + S // 10,
        )  # fmt: skip
    for at_ns in scene.times(pick((3, 6, 9)), 0, 40):
        scene.add(
            "accesses", client=scene.name("user"), session=0, node=pick((1, 1, 2)),
            subject=pick(subjects), invoke_ns=at_ns, complete_ns=at_ns + S // 10,
            outcome=pick(("ok", "denied", "shows grant", "shows none", "info")),
        )  # fmt: skip


def draw_questions(scene: Scene) -> None:
    """An examiner's questions beside a fault."""
    base_ns, pick = scene.number * 1000 * S, scene.random.choice
    begin_ns = base_ns + pick((10, 20, 30)) * S
    end_ns = begin_ns + pick((1, 5)) * S
    scene.add("windows", n=scene.number, begin_ns=begin_ns, end_ns=end_ns)
    for at_ns in scene.times(4, 0, 50):
        scene.add(
            "accesses", client=scene.name("examiner"), session=0, node=pick((-1, 1)),
            subject=pick(("a", "b")), invoke_ns=base_ns + at_ns,
            complete_ns=base_ns + at_ns + pick((1, 10)) * S,
            outcome=pick(("right", "wrong", "wrong", "ok", None)),
        )  # fmt: skip


def draw_quotas(scene: Scene) -> None:
    """A client with a quota, and another, that write and read records of 10 bytes."""
    pick = scene.random.choice
    for n in (0, 1):
        scene.part(n)
    clients = [scene.name("a"), scene.name("b")]
    for n, kind in enumerate(("written", "read")):
        from_ns = pick((0, 2, 4)) * S
        scene.add(
            "quota_limits", n=2 * scene.number + n, client=clients[0], kind=kind, rate=10.0,
            from_ns=from_ns, to_ns=from_ns + pick((4, 8)) * S, record_bytes=10,
            bytes=pick((10, 20, 40)),
        )  # fmt: skip
    for number, at_ns in enumerate(scene.times(8, 0, 12)):
        value, outcome = scene.name("v") + f"/{number}", pick(("ok", "ok", "ok", "info", "fail"))
        place = scene.place(pick((0, 0, 1)))
        scene.add(
            "sends", **place, partition_intended=place["partition"], client=pick(clients),
            session=0, op=number, value_id=value, invoke_ns=at_ns, outcome=outcome, acks=-1,
            complete_ns=at_ns + S if outcome != "info" else None,
            offset=number if outcome == "ok" else None,
        )  # fmt: skip
        for poll in range(pick((0, 1, 2))):
            scene.add(
                "reads", **place, client=pick(clients), session=0, poll=poll, offset=number,
                value_id=value, read_ns=at_ns + pick((0, 2, 5)) * S, **{"pass": 0},
            )  # fmt: skip


def draw_results(scene: Scene) -> None:
    """Results in a table and in a stream, expected and written."""
    pick = scene.random.choice
    for mode in ("latest", "each"):
        sink = scene.name(mode)
        for key in "abc":
            if scene.chance(0.7):
                scene.add(
                    "expected_outputs", sink=sink, key=key, value=pick("12"), mode=mode,
                    due=pick((0, 1, 1)),
                )  # fmt: skip
        for position in range(pick((2, 4, 6))):
            scene.add(
                "outputs", sink=sink, partition=0, position=position, key=pick((*"abc", None)),
                value=pick(("1", "2", "2", None)),
            )  # fmt: skip
    scene.add("outputs", sink=scene.name("unknown"), partition=0, position=0, key="a", value="1")


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_rights: ("unauthorised",),
    draw_questions: ("wrong_answer",),
    draw_quotas: ("quota_exceeded",),
    draw_results: ("wrong_result",),
}
