"""Rare states of nodes and disks under faults."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState

_DOWN = "(among('kills_nodes', {0}.effects) OR among('stops_nodes', {0}.effects))"


def _on_leader(*effects: str) -> str:
    """Faults with one of these effects on a broker that led a partition when they began."""
    has = " OR ".join(f"among('{effect}', strikes.effects)" for effect in effects)
    return f"""SELECT DISTINCT strikes.n, strikes.broker FROM strikes JOIN versions
        ON versions.leader = strikes.broker AND versions.at_ns <= strikes.begin_ns
          AND versions.until_ns > strikes.begin_ns
        WHERE {has}"""


STATES = (
    RareState(
        name="two_faults_on_one_node",
        about="Two faults acted on one node at once.",
        reads=("strikes",),
        query="""SELECT DISTINCT later.n, later.node FROM strikes later JOIN strikes earlier
            ON earlier.node = later.node AND earlier.n <> later.n
              AND earlier.begin_ns <= later.begin_ns AND earlier.end_ns > later.begin_ns""",
    ),
    RareState(
        name="all_replicas_down",
        about="All replicas of a partition, two or more, were down at once.",
        reads=("strikes", "versions"),
        query=f"""SELECT later.n, versions.p FROM strikes later JOIN versions
            ON among(later.broker, versions.replicas) AND versions.replication > 1
              AND versions.at_ns <= later.begin_ns AND versions.until_ns > later.begin_ns
            JOIN strikes other ON among(other.broker, versions.replicas)
              AND other.begin_ns <= later.begin_ns AND other.healing_ns > later.begin_ns
            WHERE {_DOWN.format("later")} AND {_DOWN.format("other")}
            GROUP BY later.n, versions.p, versions.replication
            HAVING COUNT(DISTINCT other.broker) = versions.replication""",
    ),
    RareState(
        name="leader_and_follower_down",
        about="A leader and a follower in sync were down at once.",
        reads=("strikes", "versions"),
        query=f"""SELECT DISTINCT later.n FROM strikes later JOIN strikes earlier
            ON earlier.broker <> later.broker AND earlier.begin_ns <= later.begin_ns
              AND earlier.healing_ns > later.begin_ns
            JOIN versions ON versions.at_ns <= earlier.begin_ns
              AND versions.until_ns > earlier.begin_ns
              AND versions.leader IN (earlier.broker, later.broker)
              AND among(earlier.broker, versions.isr) AND among(later.broker, versions.isr)
            WHERE {_DOWN.format("later")} AND {_DOWN.format("earlier")}""",
    ),
    RareState(
        name="broker_killed_right_after_restart",
        about="A broker was killed again within ten seconds of its restart.",
        reads=("strikes",),
        query="""SELECT DISTINCT later.n FROM strikes later JOIN strikes earlier
            ON earlier.node = later.node
              AND later.begin_ns - earlier.end_ns BETWEEN 0 AND seconds(10)
            WHERE among('kills_nodes', earlier.effects) AND among('kills_nodes', later.effects)""",
    ),
    RareState(
        name="broker_struck_before_return_to_isr",
        about="A fault struck a restarted broker again before it had returned to an ISR.",
        reads=("strikes", "absences"),
        query=f"""SELECT DISTINCT later.n FROM strikes later JOIN strikes earlier
            ON earlier.broker = later.broker AND later.begin_ns >= earlier.end_ns
            JOIN absences ON absences.broker = later.broker
              AND absences.left_ns BETWEEN earlier.begin_ns AND earlier.end_ns
              AND (absences.back_ns IS NULL OR absences.back_ns > later.begin_ns)
            WHERE {_DOWN.format("earlier")}""",
    ),
    RareState(
        name="power_cut_on_leader",
        about="A leader lost what it had written and not flushed.",
        reads=("strikes", "versions"),
        query=_on_leader("loses_writes"),
    ),
    RareState(
        name="emptied_disk_refilled",
        about="A broker lost its disk, and its empty replica returned to the ISR.",
        reads=("strikes", "absences"),
        query="""SELECT DISTINCT strikes.n, absences.p FROM strikes JOIN absences
            ON absences.broker = strikes.broker AND absences.back_ns > strikes.begin_ns
            WHERE among('empties_disks', strikes.effects)""",
    ),
    RareState(
        name="leader_could_not_write",
        about="The disk of a leader was full or read-only.",
        reads=("strikes", "versions"),
        query=_on_leader("fills_disks", "locks_disks"),
    ),
    RareState(
        name="leader_lost_log_directory",
        about="A log directory was missing below a running leader.",
        reads=("strikes", "versions"),
        query=_on_leader("removes_disks"),
    ),
    RareState(
        name="leader_clock_moved",
        about="The clock of a leader jumped.",
        reads=("strikes", "versions"),
        query=_on_leader("moves_clocks"),
    ),
    RareState(
        name="files_damaged_under_replica",
        about="Files of a replica were damaged on disk.",
        reads=("strikes", "versions"),
        query="""SELECT DISTINCT strikes.n FROM strikes JOIN versions
            ON among(strikes.broker, versions.replicas) AND versions.at_ns <= strikes.begin_ns
            WHERE among('damages_files', strikes.effects)""",
    ),
    RareState(
        name="process_exited_by_itself",
        about="A broker or controller exited although no fault had ended it.",
        reads=("samples",),
        query="SELECT * FROM samples WHERE metric = 'exit_code'",
    ),
    RareState(
        name="fault_began_in_healing",
        about="A fault began while another was being healed.",
        reads=("strikes",),
        query="""SELECT DISTINCT later.n FROM strikes later JOIN strikes earlier
            ON later.n <> earlier.n AND later.begin_ns > earlier.healing_ns
              AND later.begin_ns < earlier.end_ns""",
    ),
    RareState(
        name="broker_and_metadata_node_struck",
        about="A broker and a server of ZooKeeper or of KRaft's quorum were under faults at once.",
        reads=("strikes",),
        query="""SELECT DISTINCT one.n, other.n FROM strikes one JOIN strikes other
            ON one.n <> other.n AND one.begin_ns < other.end_ns AND other.begin_ns < one.end_ns
            WHERE one.broker IS NOT NULL AND regexp_matches(other.node, '^(zk|q)')""",
    ),
    RareState(
        name="controller_and_leader_struck",
        about="The controller and the leader of a partition, two brokers, were under faults at "
        "once.",
        reads=("strikes", "terms", "versions"),
        query="""SELECT DISTINCT one.n, other.n FROM strikes one
            JOIN terms ON terms.controller = one.broker AND terms.from_ns <= one.begin_ns
              AND terms.until_ns > one.begin_ns
            JOIN strikes other ON other.broker <> one.broker AND one.begin_ns < other.end_ns
              AND other.begin_ns < one.end_ns
            JOIN versions ON versions.leader = other.broker
              AND versions.at_ns <= other.begin_ns AND versions.until_ns > other.begin_ns""",
    ),
)
