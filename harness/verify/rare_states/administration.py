"""Rare states of administrative acts."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState

_WITHOUT_BROKER = """SELECT DISTINCT admin_ops.invoke_ns, admin_ops.subject FROM admin_ops
    JOIN broker_absences ON broker_absences.gone_ns < admin_ops.invoke_ns
      AND broker_absences.back_ns > admin_ops.invoke_ns
    WHERE admin_ops.act"""
"""Acts that were requested while a broker was not registered."""
_ON_TOPICS = (
    "('create', 'delete', 'add partitions', 'config', 'reassign', 'elect preferred', 'quota')"
)

STATES = (
    RareState(
        name="leader_removed_by_move",
        about="A reassignment removed the leader of its partition.",
        reads=("moves", "versions"),
        query="""SELECT DISTINCT moves.p, moves.from_ns FROM moves JOIN elected
            ON elected.p = moves.p AND among(elected.prev_leader, moves.removed)
              AND elected.at_ns BETWEEN moves.from_ns AND moves.until_ns + seconds(10)""",
    ),
    RareState(
        name="new_replica_struck_in_move",
        about="A fault struck a broker that a reassignment was just adding.",
        reads=("moves", "strikes"),
        query="""SELECT DISTINCT moves.p, moves.from_ns FROM moves JOIN strikes
            ON among(strikes.broker, moves.added) AND strikes.begin_ns < moves.until_ns
              AND strikes.end_ns > moves.from_ns""",
    ),
    RareState(
        name="move_unfinished",
        about="A reassignment had not ended when the load did.",
        reads=("moves",),
        query="SELECT * FROM moves WHERE until_ns >= (SELECT end_ns FROM load_span)",
    ),
    RareState(
        name="replicas_added",
        about="A reassignment gave a partition more replicas.",
        reads=("moves",),
        query="SELECT * FROM moves WHERE removed = ','",
    ),
    RareState(
        name="move_cancelled",
        about="An administrator cancelled a reassignment that was under way.",
        reads=("admin_ops",),
        query="""SELECT * FROM admin_ops WHERE act = 'cancel moves' AND outcome = 'ok'
              AND regexp_matches("before", '\\[')""",
    ),
    RareState(
        name="topic_deleted_without_broker",
        about="A topic was deleted while a broker was absent.",
        reads=("admin_ops", "presences"),
        query=f"{_WITHOUT_BROKER} = 'delete'",
    ),
    RareState(
        name="partitions_added_without_broker",
        about="Partitions were added to a topic while a broker was absent.",
        reads=("admin_ops", "presences"),
        query=f"{_WITHOUT_BROKER} = 'add partitions'",
    ),
    RareState(
        name="topic_created_without_broker",
        about="A topic was created while a broker was absent.",
        reads=("admin_ops", "presences"),
        query=f"{_WITHOUT_BROKER} = 'create'",
    ),
    RareState(
        name="topic_created_again",
        about="A deleted topic was created again under its name.",
        reads=("versions",),
        query="SELECT topic FROM versions GROUP BY topic HAVING COUNT(DISTINCT topic_id) > 1",
    ),
    RareState(
        name="topic_deleted_with_open_sends",
        about="A topic was deleted while records to it were open.",
        reads=("admin_ops", "sends"),
        query="""SELECT DISTINCT admin_ops.invoke_ns FROM admin_ops JOIN sends
            ON sends.topic = admin_ops.subject AND sends.invoke_ns < admin_ops.complete_ns
              AND (sends.complete_ns IS NULL OR sends.complete_ns > admin_ops.invoke_ns)
            WHERE admin_ops.act = 'delete'""",
    ),
    RareState(
        name="setting_changed_at_election",
        about="A setting of a topic was changed within a second of an election in it.",
        reads=("admin_ops", "versions"),
        query="""SELECT DISTINCT admin_ops.invoke_ns FROM admin_ops JOIN elected
            ON elected.topic = admin_ops.subject AND elected.at_ns
              BETWEEN admin_ops.invoke_ns - seconds(1) AND admin_ops.complete_ns + seconds(1)
            WHERE admin_ops.act = 'config'""",
    ),
    RareState(
        name="two_acts_at_once",
        about="Two administrative acts on topics or quotas were under way at once.",
        reads=("admin_ops",),
        query=f"""SELECT later.invoke_ns FROM admin_ops later JOIN admin_ops earlier
            ON earlier.invoke_ns < later.invoke_ns AND earlier.complete_ns > later.invoke_ns
            WHERE earlier.act IN {_ON_TOPICS} AND later.act IN {_ON_TOPICS}""",
    ),
    RareState(
        name="act_without_success",
        about="An administrative act on a topic or a quota was rejected, or did not end in time.",
        reads=("admin_ops",),
        query=f"SELECT * FROM admin_ops WHERE outcome IN ('info', 'fail') AND act IN {_ON_TOPICS}",
    ),
    RareState(
        name="right_revoked_in_use",
        about="A user lost a right that it had used before, and was denied.",
        reads=("admin_ops", "accesses"),
        query="""SELECT DISTINCT admin_ops.subject, admin_ops.invoke_ns FROM admin_ops
            JOIN accesses used ON used.subject = admin_ops.subject AND used.outcome = 'ok'
              AND used.complete_ns < admin_ops.invoke_ns
            JOIN accesses denied ON denied.subject = admin_ops.subject
              AND denied.outcome = 'denied' AND denied.invoke_ns > admin_ops.invoke_ns
            WHERE admin_ops.act = 'revoke' AND admin_ops.outcome = 'ok'""",
    ),
    RareState(
        name="transaction_left_to_initialisation",
        about="The lab's initialisation of a transactional id found that its last transaction had "
        "not ended.",
        reads=("admin_ops",),
        query="SELECT * FROM admin_ops WHERE act = 'initialise' AND outcome = 'fail'",
    ),
)
