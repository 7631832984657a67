"""Brokers that do not start again, or start without what was on their disk."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-5747",
        issue="KAFKA-5747",
        about="A producer snapshot that a power cut shortened ends the start of the broker, each "
        "time.",
        releases="0.11.0.0",
        fixed_in="0.11.0.1",
        broken="0.11.0.0",
        fixed="0.11.0.1",
        scenario="power-cut-snapshot",
        guarantee="unexpected_exit",
        sub_kinds=("starting",),
        also=("corrupt", "replica_divergence"),
    ),
    KnownBug(
        name="kafka-3968",
        issue="KAFKA-3968",
        about="A new segment is flushed and the directory is not, so a power cut may take the file "
        "with records below the recovery point.",
        releases="0.8.0 to 2.8.2",
        fixed_in="3.0.0",
        broken="2.8.2",
        fixed="3.0.2",
        scenario="power-cut-directories",
        guarantee="lost_write",
        sub_kinds=("prefix", "middle", "tail"),
        also=(
            "inconsistent_offset",
            "vanished_read",
            "stale_append",
            "causal_loss",
            "latest_went_back",
            "end_below_ack",
            "time_index_wrong",
        ),
    ),
)
