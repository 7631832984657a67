"""Nodes that end, that do not start again, or start without what was on their disk."""

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
    KnownBug(
        name="kafka-16814",
        issue="KAFKA-16814",
        about="A broker dies before it has flushed the topic id of a new replica, and each start "
        "ends at the folder without an id.",
        releases="3.7.0, without ZooKeeper",
        fixed_in="3.7.1",
        broken="3.7.0",
        fixed="3.7.2",
        scenario="crash-at-creation",
        guarantee="unexpected_exit",
        sub_kinds=("starting",),
        also=("slow_recovery",),
        target="kafka-kraft",
    ),
    KnownBug(
        name="kafka-14946",
        issue="KAFKA-14946",
        about="A controller that undoes uncommitted changes, since another one leads, fails at "
        "them; it stops to serve, and its process neither works nor ends.",
        releases="3.3.1 to 3.4.0, without ZooKeeper",
        fixed_in="3.4.1",
        broken="3.4.0",
        fixed="3.4.1",
        scenario="undone-changes",
        guarantee="unexpected_exit",
        sub_kinds=("closed", "running"),
        target="kafka-kraft",
    ),
)
