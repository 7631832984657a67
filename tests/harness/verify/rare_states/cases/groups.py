"""Cases of `rare_states/groups.py`."""

from __future__ import annotations

from tests.harness.verify.rare_states.made import Case, Made
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC


def rebalanced(at_s: float) -> Made:
    """`g1` owned the partition in generation 1, and `g2` in generation 2 from a time on."""
    return (
        Made().add("assignments", at_s=1).add("assignments", client="g2", generation=2, at_s=at_s)
    )


def coordinated(at_s: float) -> Made:
    """A member that joined at 1 s, and another coordinator of its group from a time on."""
    return Made().add("assignments", at_s=1).coordinated(OFFSETS_TOPIC, (0, 1), (at_s, 2))


def generations(*times_s: float) -> Made:
    """Generations of a group that began at these times."""
    made = Made()
    for number, at_s in enumerate(times_s):
        made.add("assignments", generation=1 + number, at_s=at_s)
    return made


def members(*counts: int) -> Made:
    """Generations with this number of members."""
    made = Made()
    for number, count in enumerate(counts):
        for member in range(count):
            made.add("assignments", client=f"g{member}", generation=number, at_s=number)
    return made


CASES: dict[str, Case] = {
    "commit_after_rebalance_began": (
        rebalanced(5).add("commits", invoke_s=6),
        rebalanced(5).add("commits", invoke_s=4),
    ),
    "commit_of_old_member_rejected": (
        Made().add("commits", outcome="fail", error="ILLEGAL_GENERATION"),
        Made().add("commits", outcome="fail", error="NOT_COORDINATOR"),
    ),
    "read_in_old_generation": (
        rebalanced(5).add("reads", client="g1", generation=1, offset=0, read_s=6.5),
        rebalanced(5).add("reads", client="g1", generation=1, offset=0, read_s=5.5),
    ),
    "coordinator_moved_between_commit_and_fetch": (
        coordinated(5).add("commits", complete_s=4).add("commit_reads", invoke_s=6),
        coordinated(5).add("commits", complete_s=4).add("commit_reads", invoke_s=4.5),
    ),
    "coordinator_moved_during_commit": (
        coordinated(5).add("commits", invoke_s=4, complete_s=6),
        coordinated(5).add("commits", invoke_s=6, complete_s=7),
    ),
    "rebalance_after_coordinator_moved": (
        coordinated(5).add("assignments", generation=2, at_s=7),
        coordinated(5).add("assignments", generation=2, at_s=9),
    ),
    "three_generations_in_ten_seconds": (generations(1, 5, 10), generations(1, 5, 12)),
    "partition_lost": (
        Made().add("assignments", event="lost", at_s=1),
        Made().add("assignments", event="revoked", at_s=1),
    ),
    "partition_taken_from_silent_member": (
        Made().add("assignments", at_s=1).add("assignments", client="g2", at_s=5),
        Made().add("assignments", at_s=1).add("assignments", event="revoked", at_s=4)
        .add("assignments", client="g2", at_s=5),
    ),
    "one_member_owned_all": (members(2, 1), members(2, 2)),
    "static_member_returned": (
        Made().add("clients", group="group", instance="i1", begin_s=1)
        .add("clients", session=2, group="group", instance="i1", begin_s=5),
        Made().add("clients", group="group", instance="i1", begin_s=1)
        .add("clients", session=2, group="group", instance="i2", begin_s=5),
    ),
    "commit_without_answer": (
        Made().add("commits", outcome="info"),
        Made().add("commits", outcome="fail"),
    ),
    "owner_killed": (
        Made().add("assignments", at_s=1)
        .add("admin_ops", act="kill client", subject="g1", invoke_s=5),
        Made().add("assignments", at_s=1).add("assignments", event="revoked", at_s=4)
        .add("admin_ops", act="kill client", subject="g1", invoke_s=5),
    ),
}  # fmt: skip
