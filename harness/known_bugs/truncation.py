"""Logs that diverge because a follower truncates to the wrong offset."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-6361",
        issue="KAFKA-6361 (KIP-279)",
        about="After two fast elections a follower truncates by an epoch that the leader does not "
        "have, keeps records of a lost leader, and the logs diverge.",
        releases="0.11.0.0 to 1.1.1",
        fixed_in="2.0.0",
        broken="1.0.0",
        fixed="2.0.1",
        scenario="epoch-truncation",
        guarantee="replica_divergence",
        sub_kinds=("content",),
        also=("epoch_lineage", "lost_write"),
    ),
)
