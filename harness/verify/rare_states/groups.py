"""Rare states of consumer groups and their coordinators."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState

_REJECTED = " OR ".join(
    f"error_is(error, '{word}')"
    for word in (
        *("ILLEGALGENERATION", "UNKNOWNMEMBER", "REBALANCEINPROGRESS", "FENCEDINSTANCE"),
        "COMMITFAILED",
    )
)
"""Errors that end a membership; kafka-python's CommitFailedError stands for several of them."""

STATES = (
    RareState(
        name="commit_after_rebalance_began",
        about="A member committed in a generation after another member had joined a later one.",
        reads=("commits", "assignments"),
        query="""SELECT DISTINCT commits.client, commits.invoke_ns FROM commits JOIN assignments
            ON assignments."group" = commits."group" AND assignments.event = 'assigned'
              AND assignments.generation > commits.generation
              AND assignments.at_ns < commits.invoke_ns
            WHERE commits.generation >= 0""",
    ),
    RareState(
        name="commit_of_old_member_rejected",
        about="The coordinator rejected the commit of a member of an earlier generation.",
        reads=("commits",),
        query=f"SELECT * FROM commits WHERE outcome = 'fail' AND ({_REJECTED})",
    ),
    RareState(
        name="read_in_old_generation",
        about="A member still received records in its generation a second after another had joined "
        "a later one.",
        reads=("reads", "assignments"),
        query="""SELECT DISTINCT reads.client, reads.session, reads.generation FROM reads
            JOIN assignments own ON own.client = reads.client AND own.session = reads.session
              AND own.generation = reads.generation
            JOIN assignments later ON later."group" = own."group" AND later.event = 'assigned'
              AND later.generation > own.generation
              AND reads.read_ns > later.at_ns + seconds(1)""",
    ),
    RareState(
        name="coordinator_moved_between_commit_and_fetch",
        about="The coordinator of a group changed after a commit, and before the next fetch of the "
        "position.",
        reads=("commits", "commit_reads", "coordinators"),
        query="""SELECT DISTINCT coordinators.name, coordinators.from_ns FROM coordinators
            JOIN commits
            ON commits."group" = coordinators.name AND commits.outcome = 'ok'
              AND commits.complete_ns < coordinators.from_ns
            JOIN commit_reads ON commit_reads."group" = coordinators.name
              AND commit_reads.topic_id = commits.topic_id
              AND commit_reads.partition = commits.partition
              AND commit_reads.outcome = 'ok' AND commit_reads.invoke_ns > coordinators.from_ns
            WHERE coordinators.kind = 'group' AND coordinators.prev_leader IS NOT NULL""",
    ),
    RareState(
        name="coordinator_moved_during_commit",
        about="The coordinator of a group changed between a commit and its answer.",
        reads=("commits", "coordinators"),
        query="""SELECT DISTINCT commits.client, commits.invoke_ns FROM commits JOIN coordinators
            ON coordinators.kind = 'group' AND coordinators.name = commits."group"
              AND coordinators.prev_leader IS NOT NULL
              AND coordinators.from_ns BETWEEN commits.invoke_ns AND commits.complete_ns""",
    ),
    RareState(
        name="rebalance_after_coordinator_moved",
        about="A generation of a group began within three seconds of a change of its coordinator.",
        reads=("assignments", "coordinators"),
        query="""SELECT DISTINCT coordinators.name, coordinators.from_ns FROM coordinators JOIN (
              SELECT "group", generation, MIN(at_ns) AS at_ns FROM assignments
              WHERE event = 'assigned' AND generation >= 0 GROUP BY ALL) generations
            ON generations."group" = coordinators.name
              AND generations.at_ns - coordinators.from_ns BETWEEN 0 AND seconds(3)
            WHERE coordinators.kind = 'group' AND coordinators.prev_leader IS NOT NULL""",
    ),
    RareState(
        name="three_generations_in_ten_seconds",
        about="A group began three generations within ten seconds.",
        reads=("assignments",),
        query="""SELECT * FROM (
              SELECT "group", at_ns, LAG(at_ns, 2) OVER (PARTITION BY "group" ORDER BY at_ns)
                AS earlier_ns
              FROM (SELECT "group", generation, MIN(at_ns) AS at_ns FROM assignments
                    WHERE event = 'assigned' AND generation >= 0 GROUP BY ALL))
            WHERE at_ns - earlier_ns < seconds(10)""",
    ),
    RareState(
        name="partition_lost",
        about="A member learned that it had lost a partition, without a chance to commit.",
        reads=("assignments",),
        query="SELECT * FROM assignments WHERE event = 'lost'",
    ),
    RareState(
        name="partition_taken_from_silent_member",
        about="A partition was assigned to a member while its former owner had neither revoked nor "
        "lost it.",
        reads=("assignments",),
        query="""SELECT * FROM (
              SELECT client, event, LAG(client) OVER earlier AS owner,
                LAG(event) OVER earlier AS last_event
              FROM assignments WHERE event IN ('assigned', 'revoked', 'lost')
              WINDOW earlier AS (PARTITION BY "group", topic_id, partition ORDER BY at_ns))
            WHERE event = 'assigned' AND last_event = 'assigned' AND owner <> client""",
    ),
    RareState(
        name="one_member_owned_all",
        about="A generation had one member alone, after one with several.",
        reads=("assignments",),
        query="""SELECT * FROM (
              SELECT members, LAG(members) OVER (PARTITION BY "group" ORDER BY generation)
                AS members_before
              FROM (SELECT "group", generation, COUNT(DISTINCT client) AS members
                    FROM assignments WHERE event = 'assigned' AND generation >= 0 GROUP BY ALL))
            WHERE members = 1 AND members_before > 1""",
    ),
    RareState(
        name="static_member_returned",
        about="A static member joined again under its instance id.",
        reads=("clients",),
        query="""SELECT * FROM (
              SELECT begin_ns, MIN(begin_ns) OVER (PARTITION BY "group", instance) AS first_ns
              FROM clients WHERE instance IS NOT NULL)
            WHERE begin_ns > first_ns""",
    ),
    RareState(
        name="commit_without_answer",
        about="A member never learned whether its commit took effect.",
        reads=("commits",),
        query="SELECT * FROM commits WHERE outcome = 'info'",
    ),
    RareState(
        name="owner_killed",
        about="A member was killed while it owned a partition.",
        reads=("assignments", "admin_ops"),
        query="""SELECT DISTINCT admin_ops.subject, admin_ops.invoke_ns FROM admin_ops
            JOIN (SELECT client, topic_id, partition, event, at_ns, LEAD(at_ns) OVER (
                    PARTITION BY client, topic_id, partition ORDER BY at_ns) AS until_ns
                  FROM assignments WHERE event IN ('assigned', 'revoked', 'lost')) owned
            ON owned.client = admin_ops.subject AND owned.event = 'assigned'
              AND admin_ops.invoke_ns > owned.at_ns
              AND (owned.until_ns IS NULL OR admin_ops.invoke_ns < owned.until_ns)
            WHERE admin_ops.act = 'kill client'""",
    ),
)
