"""Logs that diverge because a follower truncates to the wrong offset."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-1211",
        issue="KAFKA-1211 (KIP-101)",
        about="A follower truncates to the high watermark that it knows, which lags behind the "
        "leader's, and then leads without committed records.",
        releases="0.8.0 to 0.10.2.2",
        fixed_in="0.11.0.0",
        broken="0.10.2.2",
        fixed="0.11.0.3",
        scenario="epoch-truncation",
        guarantee="lost_write",
        sub_kinds=("prefix", "middle", "tail"),
        also=(
            "replica_divergence",
            "inconsistent_offset",
            "vanished_read",
            "stale_append",
            "causal_loss",
            "nonmonotonic_poll",
        ),
    ),
    KnownBug(
        name="kafka-6361",
        issue="KAFKA-6361 (KIP-279)",
        about="After two fast elections a follower truncates by an epoch that the leader does not "
        "have, keeps records of a lost leader, and the logs diverge.",
        releases="0.11.0.0 to 1.1.1",
        fixed_in="2.0.0",
        broken="1.0.0",
        fixed="2.0.1",
        scenario="untruncated-leader",
        guarantee="replica_divergence",
        sub_kinds=("content",),
        also=("epoch_lineage", "lost_write", "inconsistent_offset", "vanished_read"),
    ),
    KnownBug(
        name="kafka-10432",
        issue="KAFKA-10432",
        about="Recovery after a crash does not find leader epoch 0 in the log, when the file of "
        "leader epochs is lost.",
        releases="0.11.0.0 to 2.6.0",
        fixed_in="2.6.1",
        broken="2.6.0",
        fixed="2.6.1",
        scenario="power-cut-epochs",
        guarantee="epoch_lineage",
        sub_kinds=("outside",),
    ),
    KnownBug(
        name="kafka-13141",
        issue="KAFKA-13141",
        about="A leader counts the fetch of a follower whose log diverges as if the follower had "
        "its records, adds it to the ISR, and the follower leads without committed records.",
        releases="2.7.0, 2.7.1 and 2.8.0 (2.7.2 has the fix)",
        fixed_in="2.8.1",
        broken="2.8.0",
        fixed="2.8.1",
        scenario="diverging-fetch",
        guarantee="lost_write",
        sub_kinds=("prefix", "middle", "tail"),
        also=("inconsistent_offset", "vanished_read", "causal_loss", "time_index_wrong"),
    ),
    KnownBug(
        name="kafka-7415",
        issue="KAFKA-7415",
        about="A leader without records of its own epoch cannot answer a follower that has some of "
        "an epoch between; the follower truncates to the high watermark that it knows, and then "
        "leads without committed records.",
        releases="0.11.0.0 to 2.0.0",
        fixed_in="2.0.1",
        broken="2.0.0",
        fixed="2.0.1",
        scenario="uncached-epoch",
        guarantee="lost_write",
        sub_kinds=("prefix", "middle", "tail"),
        also=(
            "inconsistent_offset",
            "vanished_read",
            "causal_loss",
            "stale_append",
            "nonmonotonic_poll",
            "epoch_lineage",
        ),
    ),
    KnownBug(
        name="kafka-10706",
        issue="KAFKA-10706",
        about="A follower keeps an epoch in which it led without a record, truncates by it again "
        "and again, and never returns to the ISR.",
        releases="2.0.1 to 2.6.0",
        fixed_in="2.6.1",
        broken="2.6.0",
        fixed="2.6.1",
        scenario="leader-without-records",
        guarantee="slow_recovery",
        sub_kinds=("late",),
    ),
)
