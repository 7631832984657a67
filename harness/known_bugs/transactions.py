"""Transactions that end at the wrong time."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-17754",
        issue="KAFKA-17754 (KIP-890)",
        about="A delayed EndTxn ends the next transaction of its producer, since both have one "
        "epoch.",
        releases="0.11.0.0 to 3.9.1, and later ones with older clients",
        fixed_in="4.0.0",
        broken="3.9.1",
        fixed="4.1.2",
        scenario="delayed-end-txn",
        guarantee="torn_txn",
        sub_kinds=("missing", "visible"),
        also=("aborted_read", "precommitted_read"),
        permitted=True,
    ),
    KnownBug(
        name="kafka-14402",
        issue="KAFKA-14402 (KIP-890)",
        about="A delayed record of an aborted transaction opens one that no coordinator knows, and "
        "readers of committed records wait for its end for ever.",
        releases="0.11.0.0 to 3.5.2",
        fixed_in="3.6.0",
        broken="3.5.2",
        fixed="3.6.2",
        scenario="late-produce",
        guarantee="hanging_txn",
        sub_kinds=("open",),
        or_shown_by=("stale_end/end",),
    ),
)
