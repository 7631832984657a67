"""Brokers that do not start again."""

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
)
