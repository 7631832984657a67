"""Scenes of applications and mirrors: inputs, their copies, and the groups' commits."""

from __future__ import annotations

from tests.harness.verify.scenes.scene import END_NS, Draw, S, Scene

INPUT, OUTPUT, OTHER = 0, 1, 2


def draw_pipeline(scene: Scene) -> None:
    """An input and its output, copied by an application or within transactions."""
    pick, run = scene.random.choice, scene.run
    is_app = run.random() < 0.5
    scene.part(INPUT, compacted=int(scene.chance(0.1)), log_start=pick((0, 0, 2)))
    output = {
        "copies": int(is_app), "compacted": int(run.random() < 0.3), "seen_end": 30,
        "log_start": run.choice((0, 0, 3)),
        "retention_ns": run.choice((None, END_NS, END_NS - 4 * S)),
        "retention_bytes": run.choice((None, None, -1, 100)),
    }  # fmt: skip
    for n in (OUTPUT, OTHER):
        scene.part(n, **output)
    if not scene.number:
        scene.add("settings", in_flight=1, ordered=int(run.random() < 0.8))
    for number, at_ns in enumerate(scene.times(5, 0, 10)):
        value = f"{scene.name('v')}/{number}"
        txn = _txn(scene, number) if scene.chance(0.4) else None
        scene.send(INPUT, number, value, at_ns, txn=txn, key=pick(("a", "a", "b", None)))
        scene.lie(INPUT, value, number, transactional=txn is not None)
        if scene.chance(0.1):
            scene.lie(INPUT, value, number + 10)
        for copy in range(pick((0, 1, 1, 1, 2))):
            _copy(scene, value, number, copy, is_app=is_app)
    for n in (INPUT, OUTPUT, OTHER):
        for broker in (1, 2):
            scene.log(broker, 30, n)
        scene.final_passes(n, ("read_uncommitted", "read_committed"), pick((0, 4, 30, 30)))
    if not is_app or scene.chance(0.2):
        for group in ("g", "h"):
            scene.add("group_positions", grp=scene.name(group), p=scene.p(INPUT),
                      position=pick((0, 2, 3, 5)), fetched_ns=20 * S)  # fmt: skip


def _txn(scene: Scene, number: int, grp: str | None = None) -> int:
    """A transaction of its own, in both tables."""
    fate = scene.random.choice(("committed", "committed", "committed", "aborted", "unknown"))
    session = {"client": scene.name("a"), "session": 0, "txn": number}
    asked_ns = None if fate == "aborted" else S
    is_late = scene.chance(0.1)
    scene.add("txns", **session, outcome=fate, begin_ns=0, commit_invoke_ns=asked_ns, end_ns=2 * S,
              late_end_ns=S if is_late else None, transactional_id=scene.name("t"))  # fmt: skip
    scene.add("txn_p", **session, fate=fate, outcome=fate, begin_ns=0, end_ns=2 * S,
              late=int(is_late), grp=grp, early_abort=0, tid=scene.name("t"))  # fmt: skip
    return number


def _copy(scene: Scene, value: str, number: int, copy: int, *, is_app: bool) -> None:
    """A copy near the place of its input, or at another one, in one of two partitions."""
    pick = scene.random.choice
    n, offset = pick((OUTPUT, OUTPUT, OTHER)), 10 * copy + number + pick((0, 0, 0, 2, -2)) + 2
    if is_app:
        scene.lie(n, f"copy/{value}", offset)
        return
    txn = _txn(scene, 100 + 10 * number + copy, pick((None, scene.name("g"), scene.name("h"))))
    name = f"{value}/{copy}"
    scene.send(n, offset, name, 11 * S, txn=txn, source=value, op=txn)
    scene.lie(n, name, offset, transactional=True)


def draw_mirror(scene: Scene) -> None:
    """A partition, its mirror, and positions that were translated to the mirror."""
    pick = scene.random.choice
    for n in (INPUT, OUTPUT, OTHER):
        scene.part(n)
    scene.add("mirrors", p=scene.p(OUTPUT), source_p=scene.p(INPUT))
    for number, at_ns in enumerate(scene.times(6, 0, 10)):
        value = f"{scene.name('v')}/{number}"
        scene.send(INPUT, number, value, at_ns)
        scene.lie(INPUT, value, number)
        if scene.chance(0.1):
            scene.lie(INPUT, value, number + 10)
        offset = number + pick((0, 0, 0, 0, 2, -2)) + 3
        if scene.chance(0.8):
            scene.lie(pick((*[OUTPUT] * 8, OTHER)), f"copy/{value}", offset)
        if scene.chance(0.2):
            scene.lie(
                pick((OUTPUT, OUTPUT, OTHER)), f"copy/{value}", max(0, offset + pick((-3, 10)))
            )
    for n in (INPUT, OUTPUT, OTHER):
        scene.log(1, 30, n)
    for at_ns in scene.times(3, 10, 20):
        scene.add("translations", grp=scene.name("g"), p=scene.p(OUTPUT), source_p=scene.p(INPUT),
                  position=pick(range(9)), processed=pick(range(8)), at_ns=at_ns,
                  until_ns=at_ns + S)  # fmt: skip


SCENES: dict[Draw, tuple[str, ...]] = {
    draw_pipeline: ("offsets_not_atomic", "unprocessed", "processed_twice", "reordered_copy"),
    draw_mirror: ("mirror_gap", "mirror_order", "translated_too_far"),
}
