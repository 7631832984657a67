"""The effects of faults: the set from which each fault declares its own.

The nemesis writes the effects of each injected fault into the table `faults`. The verifier reads
them there and never refers to a fault by its name.
"""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """One effect of a fault. The evidence contains its value."""

    KILLS_NODES = "kills_nodes"
    """Processes end without warning; the fault keeps them down until healing."""
    STOPS_NODES = "stops_nodes"
    """Processes end by a controlled shutdown; the fault keeps them down until healing."""
    RESTARTS_NODES = "restarts_nodes"
    """Nodes end one after another, and each starts at once."""
    REPEATS = "repeats"
    """The other effects begin and end until healing, at moments that the evidence does not have."""
    PAUSES_NODES = "pauses_nodes"
    STARVES_NODES = "starves_nodes"
    """Nodes run with little processor time."""
    LIMITS_MEMORY = "limits_memory"
    """Nodes run with little memory; the kernel may kill them."""
    EXHAUSTS_DESCRIPTORS = "exhausts_descriptors"
    """Nodes cannot open files or sockets; they may exit."""
    CHANGES_RELEASE = "changes_release"
    """Nodes start as another release."""
    SENDS_LATE_REQUESTS = "sends_late_requests"
    """Nodes receive requests of an earlier time from the lab."""

    CUTS_LINKS = "cuts_links"
    SLOWS_LINKS = "slows_links"
    """Data or the end of a connection arrives late or in pieces."""
    BREAKS_CONNECTIONS = "breaks_connections"
    """Connections end inside a request or a response; new ones can be made."""
    LOSES_MESSAGES = "loses_messages"
    """Single requests or answers never arrive, nor do those behind them on their connection."""
    REPEATS_REQUESTS = "repeats_requests"
    """Brokers receive requests of clients or brokers a second time."""
    CHANGES_ANSWERS = "changes_answers"
    """Answers have other contents than the broker sent."""
    RECORDS_MESSAGES = "records_messages"
    """Nothing is disturbed: requests and answers are written down."""
    UNPLUGS_NODES = "unplugs_nodes"
    """Nodes have no network at all."""

    EMPTIES_DISKS = "empties_disks"
    REMOVES_DISKS = "removes_disks"
    """A log directory is missing while its broker runs."""
    FILLS_DISKS = "fills_disks"
    LOCKS_DISKS = "locks_disks"
    """Log directories are read-only."""
    SLOWS_DISKS = "slows_disks"
    LOSES_WRITES = "loses_writes"
    """Data that was written but not flushed is lost."""
    DAMAGES_FILES = "damages_files"

    MOVES_CLOCKS = "moves_clocks"

    ENDS_SESSIONS = "ends_sessions"
    """Brokers lose their ZooKeeper session and register again."""
    DEPOSES_CONTROLLER = "deposes_controller"

    KILLS_CLIENTS = "kills_clients"
    PAUSES_CLIENTS = "pauses_clients"
    STOPS_POLLS = "stops_polls"
    """Group members send heartbeats and do not poll."""
    DOUBLES_CLIENTS = "doubles_clients"
    """Two processes of one client run at once."""
    CHANGES_MEMBERS = "changes_members"
    """Members join and leave groups."""

    OPERATES_APPLICATIONS = "operates_applications"
    """An operator acts on the application: its processes may restart work."""

    MOVES_REPLICAS = "moves_replicas"
    MOVES_LOGS = "moves_logs"
    """Replicas move between log directories of their broker."""
    MOVES_LEADERS = "moves_leaders"
    """Preferred leaders are elected."""
    ALLOWS_UNCLEAN_ELECTIONS = "allows_unclean_elections"
    ELECTS_UNCLEANLY = "elects_uncleanly"
    ADDS_PARTITIONS = "adds_partitions"
    DELETES_TOPICS = "deletes_topics"
    """Topics of the fault's own are created and deleted."""
    DELETES_RECORDS = "deletes_records"
    SHORTENS_RETENTION = "shortens_retention"
    CHANGES_MIN_ISR = "changes_min_isr"
    CHANGES_DEFAULTS = "changes_defaults"
    """Brokers get other defaults of settings on which no guarantee depends."""
    CHANGES_SETTINGS = "changes_settings"
    """A topic gets other settings on which no guarantee depends."""
    SETS_QUOTAS = "sets_quotas"
    CHANGES_VOTERS = "changes_voters"
    """Controllers leave and join the voters of KRaft's quorum."""


OF_SECOND_CLUSTER = frozenset(
    {
        Effect.KILLS_NODES,
        Effect.STOPS_NODES,
        Effect.RESTARTS_NODES,
        Effect.REPEATS,
        Effect.PAUSES_NODES,
        Effect.STARVES_NODES,
        Effect.CUTS_LINKS,
        Effect.SLOWS_LINKS,
        Effect.BREAKS_CONNECTIONS,
        Effect.LOSES_MESSAGES,
        Effect.REPEATS_REQUESTS,
        Effect.CHANGES_ANSWERS,
        Effect.ENDS_SESSIONS,
        Effect.DEPOSES_CONTROLLER,
    }
)
"""Effects on nodes and links, which faults may have in the second cluster of a run. The evidence of
other effects does not name the cluster."""
