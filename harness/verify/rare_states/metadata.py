"""Rare states of the controller, of registrations, of ZooKeeper and of KRaft's quorum."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState

ZOOKEEPER, KRAFT = "zookeeper", "kraft"

STATES = (
    RareState(
        name="controller_changed_twice",
        about="Two controllers took over within ten seconds.",
        reads=("terms",),
        query="""SELECT * FROM terms later JOIN terms earlier
            ON earlier.until_ns = later.prev_until_ns AND earlier.prev_controller IS NOT NULL
            WHERE later.from_ns - earlier.from_ns < seconds(10)""",
    ),
    RareState(
        name="controller_lost_office_and_lead",
        about="A broker lost the office of controller and the lead of a partition within ten "
        "seconds.",
        reads=("terms", "versions"),
        query="""SELECT DISTINCT terms.until_ns FROM terms JOIN new_epochs
            ON new_epochs.prev_leader = terms.controller AND new_epochs.leader <> terms.controller
              AND abs(new_epochs.at_ns - terms.until_ns) < seconds(10)""",
    ),
    RareState(
        name="no_controller_for_seconds",
        about="No broker was the controller for two seconds or longer.",
        reads=("terms",),
        query="SELECT * FROM terms WHERE from_ns - prev_until_ns >= seconds(2)",
        plane=ZOOKEEPER,
    ),
    RareState(
        name="controller_changed_in_move",
        about="Another controller took over in the middle of a reassignment.",
        reads=("terms", "moves"),
        query="""SELECT * FROM terms JOIN moves ON terms.prev_controller IS NOT NULL
              AND terms.from_ns BETWEEN moves.from_ns AND moves.until_ns""",
    ),
    RareState(
        name="controller_changed_in_deletion",
        about="Another controller took over while a topic was being deleted.",
        reads=("terms", "admin_ops"),
        query="""SELECT * FROM terms JOIN admin_ops ON admin_ops.act = 'delete'
              AND terms.prev_controller IS NOT NULL
              AND terms.from_ns BETWEEN admin_ops.invoke_ns AND admin_ops.complete_ns""",
    ),
    RareState(
        name="controller_inherited_election",
        about="A controller took over after a broker had left, and elected the successors of that "
        "broker in its predecessor's place.",
        reads=("terms", "presences", "versions"),
        query="""SELECT DISTINCT terms.from_ns, broker_absences.broker FROM terms
            JOIN broker_absences ON terms.from_ns BETWEEN broker_absences.gone_ns
              AND broker_absences.back_ns
            JOIN new_epochs ON new_epochs.prev_leader = broker_absences.broker
              AND new_epochs.leader <> broker_absences.broker
              AND new_epochs.at_ns BETWEEN terms.from_ns AND broker_absences.back_ns
            WHERE terms.prev_controller IS NOT NULL""",
    ),
    RareState(
        name="two_controllers_elected_in_turn",
        about="Two controllers elected leaders of the same partition within ten seconds.",
        reads=("versions",),
        query="""SELECT DISTINCT later.p, later.epoch FROM new_epochs later JOIN new_epochs earlier
            ON earlier.p = later.p AND earlier.controller_epoch < later.controller_epoch
              AND later.at_ns - earlier.at_ns BETWEEN 0 AND seconds(10)""",
    ),
    RareState(
        name="registration_renewed",
        about="A broker's registration ended, and began again within two seconds.",
        reads=("presences",),
        query="SELECT * FROM broker_absences WHERE back_ns - gone_ns <= seconds(2)",
    ),
    RareState(
        name="broker_restarted_while_registered",
        about="A killed broker was started again before its registration ended.",
        reads=("presences", "strikes"),
        query="""SELECT DISTINCT strikes.n FROM strikes JOIN presences
            ON presences.broker = strikes.broker AND presences.from_ns < strikes.begin_ns
              AND presences.until_ns > strikes.healing_ns
            WHERE among('kills_nodes', strikes.effects)""",
    ),
    RareState(
        name="two_brokers_absent",
        about="Two brokers were without registration at once.",
        reads=("presences",),
        query="""SELECT * FROM broker_absences later JOIN broker_absences earlier
            ON earlier.broker <> later.broker AND earlier.gone_ns <= later.gone_ns
              AND earlier.back_ns > later.gone_ns
              AND (earlier.gone_ns < later.gone_ns OR earlier.broker < later.broker)""",
    ),
    RareState(
        name="no_broker_registered",
        about="No broker was registered any more.",
        reads=("presences",),
        query="""SELECT later.gone_ns FROM broker_absences later JOIN broker_absences other
            ON other.gone_ns <= later.gone_ns AND other.back_ns > later.gone_ns
            GROUP BY later.gone_ns HAVING COUNT(DISTINCT other.broker)
              >= (SELECT COUNT(DISTINCT broker) FROM presences)""",
    ),
    RareState(
        name="two_metadata_nodes_struck",
        about="Two servers of ZooKeeper or of KRaft's quorum were under faults at once.",
        reads=("strikes",),
        query="""SELECT DISTINCT later.n, later.begin_ns FROM strikes later JOIN strikes earlier
            ON earlier.node <> later.node AND earlier.begin_ns <= later.begin_ns
              AND earlier.end_ns > later.begin_ns
            WHERE regexp_matches(earlier.node, '^(zk|q)') AND regexp_matches(later.node, '^(zk|q)')
            """,
    ),
    RareState(
        name="vote_was_split",
        about="Controllers of KRaft's quorum voted for different candidates of one epoch.",
        reads=("votes",),
        query="""SELECT epoch FROM votes WHERE candidate IS NOT NULL GROUP BY epoch
            HAVING COUNT(DISTINCT candidate) > 1""",
        plane=KRAFT,
    ),
    RareState(
        name="quorum_epoch_without_leader",
        about="An epoch of KRaft's quorum ended without a leader.",
        reads=("votes", "metadata_logs"),
        query="""SELECT votes.epoch FROM votes WHERE votes.candidate IS NOT NULL
              AND votes.epoch < (SELECT MAX(epoch) FROM metadata_logs)
            GROUP BY votes.epoch HAVING COUNT(votes.leader) = 0 AND votes.epoch NOT IN (
              SELECT epoch FROM metadata_logs WHERE leader IS NOT NULL)""",
        plane=KRAFT,
    ),
    RareState(
        name="former_leader_still_named",
        about="Two seconds after an election a broker still named the epoch before it.",
        reads=("versions", "views"),
        query="""SELECT DISTINCT new_epochs.p, new_epochs.epoch, views.broker FROM new_epochs
            JOIN views ON views.p = new_epochs.p AND views.leader_epoch < new_epochs.epoch
              AND views.leader_epoch >= 0 AND views.at_ns > new_epochs.at_ns + seconds(2)""",
    ),
    RareState(
        name="brokers_named_two_leaders",
        about="Two brokers named different leaders of one partition within a fifth of a second.",
        reads=("views",),
        query="""SELECT DISTINCT one.p, one.leader, other.leader FROM views one JOIN views other
            ON other.p = one.p AND other.broker <> one.broker AND other.leader <> one.leader
              AND one.leader >= 0 AND other.leader >= 0 AND one.leader_epoch < other.leader_epoch
              AND abs(other.at_ns - one.at_ns) < seconds(0.2)""",
    ),
)
