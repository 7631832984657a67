"""Replicas that leave the ISR and cannot return, and writes with fewer replicas than required."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-7235",
        issue="KAFKA-7235 (KIP-380)",
        about="A broker that has restarted executes a StopReplica for its previous life, and "
        "stops to follow.",
        releases="0.8.0 to 2.1.1",
        fixed_in="2.2.0",
        broken="2.1.1",
        fixed="2.2.2",
        scenario="late-stop",
        guarantee="shrunken_isr",
        sub_kinds=("fell out",),
        also=("slow_recovery",),
    ),
    KnownBug(
        name="kafka-9839",
        issue="KAFKA-9839",
        about="A broker that registers again rejects the controller's requests, since the "
        "controller knows its new broker epoch first, and goes on leading in the old epoch.",
        releases="2.2.0 to 2.5.0",
        fixed_in="2.5.1",
        broken="2.5.0",
        fixed="2.5.1",
        scenario="late-registration",
        guarantee="replica_divergence",
        sub_kinds=("content", "leader epoch"),
        also=("epoch_lineage", "nonmonotonic_poll", "slow_recovery", "disagreement"),
    ),
    KnownBug(
        name="kafka-9254",
        issue="KAFKA-9254",
        about="The second change of a default of all brokers drops the settings of topics, and "
        "acks=all is acknowledged below a topic's min.insync.replicas.",
        releases="1.1.0 to 2.4.0",
        fixed_in="2.4.1",
        broken="2.4.0",
        fixed="2.4.1",
        scenario="changed-defaults",
        guarantee="ack_below_min_isr",
        sub_kinds=("acknowledged",),
    ),
    KnownBug(
        name="kafka-6003",
        issue="KAFKA-6003",
        about="A follower rejects the first batch of an idempotent producer that it fetches if the "
        "producer's earlier records were deleted, and never returns to the ISR.",
        releases="0.11.0.0 and 0.11.0.1",
        fixed_in="0.11.0.2",
        broken="0.11.0.1",
        fixed="0.11.0.2",
        scenario="refilled-replica",
        guarantee="slow_recovery",
        sub_kinds=("late",),
    ),
    KnownBug(
        name="kafka-6975",
        issue="KAFKA-6975",
        about="Records are deleted up to the middle of a batch, and a follower that begins there "
        "rejects the batch and never returns to the ISR.",
        releases="0.11.0.0 to 1.1.0",
        fixed_in="1.1.1",
        broken="1.1.0",
        fixed="1.1.1",
        scenario="refilled-within-batch",
        guarantee="slow_recovery",
        sub_kinds=("late",),
    ),
    KnownBug(
        name="kafka-1120",
        issue="KAFKA-1120",
        about="The controller does not notice that a broker has restarted when it finds the same "
        "brokers registered as before, and the new process gets no replicas.",
        releases="0.8.1 to 2.1.1",
        fixed_in="2.2.0",
        broken="2.1.1",
        fixed="2.2.2",
        scenario="unseen-restart",
        guarantee="shrunken_isr",
        sub_kinds=("fell out",),
        or_shown_by=("slow_recovery/late",),
    ),
    KnownBug(
        name="kafka-3083",
        issue="KAFKA-3083",
        about="A controller that lost its ZooKeeper session during an election finishes it in the "
        "next session, although there is another controller.",
        releases="0.8.0 to 1.0.2",
        fixed_in="1.1.0",
        broken="1.0.2",
        fixed="1.1.1",
        scenario="zombie-controller",
        guarantee="epoch_went_back",
        sub_kinds=("deposed controller",),
        also=("disagreement", "two_leaders"),
    ),
    KnownBug(
        name="kafka-5634",
        issue="KAFKA-5634",
        about="A leader deletes segments beyond the high watermark, and the fetcher of a follower "
        "that begins there ends.",
        releases="0.11.0.0",
        fixed_in="0.11.0.1",
        broken="0.11.0.0",
        fixed="0.11.0.1",
        scenario="deleted-beyond-watermark",
        guarantee="slow_recovery",
        sub_kinds=("late",),
    ),
)
