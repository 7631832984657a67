"""Rare states of leaders: how they lose their leadership, and who succeeds them."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState


def _deposed_under(effect: str) -> str:
    """Elections of a successor while the former leader was under a fault with this effect."""
    return f"""SELECT DISTINCT elected.p, elected.at_ns FROM elected JOIN strikes
        ON strikes.broker = elected.prev_leader AND among('{effect}', strikes.effects)
          AND elected.at_ns BETWEEN strikes.begin_ns AND strikes.end_ns"""


STATES = (
    RareState(
        name="unclean_election",
        about="A replica from outside the ISR became the leader.",
        reads=("versions",),
        query="SELECT * FROM versions WHERE unclean = 1",
    ),
    RareState(
        name="preferred_leader_returned",
        about="The preferred replica took the lead back from a leader in sync.",
        reads=("versions",),
        query="""SELECT * FROM elected
            WHERE leader = preferred AND prev_leader >= 0 AND among(prev_leader, isr)""",
    ),
    RareState(
        name="epoch_rose_twice_in_a_second",
        about="The leader epoch of a partition rose twice within one second.",
        reads=("versions",),
        query="""SELECT DISTINCT later.p, later.epoch FROM new_epochs later JOIN new_epochs earlier
            ON earlier.p = later.p AND earlier.epoch < later.epoch
              AND later.at_ns - earlier.at_ns BETWEEN 0 AND seconds(1)""",
    ),
    RareState(
        name="partition_without_leader",
        about="A partition lost its leader, and no replica could take its place.",
        reads=("versions",),
        query="SELECT * FROM versions WHERE leader = -1 AND prev_leader >= 0",
    ),
    RareState(
        name="last_replica_returned_as_leader",
        about="A partition without a leader was led again by the last replica that had been in "
        "sync.",
        reads=("versions",),
        query="""SELECT * FROM elected
            WHERE prev_leader = -1 AND last_isr = concat(',', leader, ',')""",
    ),
    RareState(
        name="leader_regained_lead",
        about="A replica led again within ten seconds of losing the lead.",
        reads=("versions",),
        query="""SELECT DISTINCT elected.p, elected.epoch FROM elected JOIN new_epochs lost
            ON lost.p = elected.p AND lost.prev_leader = elected.leader
              AND lost.leader <> elected.leader
              AND elected.at_ns - lost.at_ns BETWEEN 0 AND seconds(10)
              AND lost.epoch < elected.epoch""",
    ),
    RareState(
        name="every_replica_led",
        about="Each of three or more replicas of a partition led it during the load.",
        reads=("versions",),
        query="""SELECT p FROM versions WHERE leader >= 0 GROUP BY p
            HAVING COUNT(DISTINCT leader) >= 3 AND COUNT(DISTINCT leader) >= MAX(replication)""",
    ),
    RareState(
        name="whole_topic_changed_leaders",
        about="All partitions of a topic, three or more, got new leaders within one second.",
        reads=("versions",),
        query="""SELECT first_one.topic_id, first_one.at_ns, topics.partitions
            FROM elected first_one JOIN elected other
            ON other.topic_id = first_one.topic_id
              AND other.at_ns - first_one.at_ns BETWEEN 0 AND seconds(1)
            JOIN (SELECT topic_id, COUNT(DISTINCT p) AS partitions FROM versions GROUP BY topic_id)
              topics ON topics.topic_id = first_one.topic_id
            GROUP BY ALL HAVING COUNT(DISTINCT other.p) >= 3
              AND COUNT(DISTINCT other.p) = topics.partitions""",
    ),
    RareState(
        name="leader_elected_alone",
        about="A new leader began as the only replica in sync of three or more.",
        reads=("versions",),
        query="SELECT * FROM elected WHERE isr_size = 1 AND replication >= 3",
    ),
    RareState(
        name="elected_right_after_return",
        about="A replica became the leader within two seconds of its return to the ISR.",
        reads=("versions", "absences"),
        query="""SELECT DISTINCT elected.p, elected.epoch FROM elected JOIN absences
            ON absences.p = elected.p AND absences.broker = elected.leader
              AND elected.at_ns - absences.back_ns BETWEEN 0 AND seconds(2)""",
    ),
    RareState(
        name="new_leader_struck",
        about="A fault ended or paused a leader within three seconds of its election.",
        reads=("versions", "strikes"),
        query="""SELECT DISTINCT elected.p, elected.epoch FROM elected JOIN strikes
            ON strikes.broker = elected.leader
              AND strikes.begin_ns - elected.at_ns BETWEEN 0 AND seconds(3)
              AND (among('kills_nodes', strikes.effects) OR among('stops_nodes', strikes.effects)
                OR among('pauses_nodes', strikes.effects))""",
    ),
    RareState(
        name="paused_leader_deposed",
        about="Another replica was elected while the leader's process was paused, so that the "
        "former leader woke up without office.",
        reads=("versions", "strikes"),
        query=_deposed_under("pauses_nodes"),
    ),
    RareState(
        name="cut_leader_deposed",
        about="Another replica was elected while the leader lived behind cut links.",
        reads=("versions", "strikes"),
        query=_deposed_under("cuts_links"),
    ),
    RareState(
        name="stopped_leader_handed_over",
        about="Another replica was elected during the controlled shutdown of the leader.",
        reads=("versions", "strikes"),
        query=_deposed_under("stops_nodes"),
    ),
    RareState(
        name="epoch_rose_under_same_leader",
        about="The leader epoch rose, and the leader remained the same.",
        reads=("versions",),
        query="SELECT * FROM new_epochs WHERE leader >= 0 AND leader = prev_leader",
    ),
)
