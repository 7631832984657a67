"""Rare states of producers and consumers, and of their requests."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState

_AT_ELECTION = """SELECT DISTINCT link_events.at_ns, link_events.correlation_id FROM link_events
    JOIN elected ON abs(elected.at_ns - link_events.at_ns) < seconds(1)
    WHERE link_events.act"""
"""Frames on which a fault acted within a second of an election."""

STATES = (
    RareState(
        name="send_crossed_election",
        about="A batch was sent to one leader, and sent again and acknowledged after the election "
        "of another.",
        reads=("sends", "versions"),
        query="""SELECT DISTINCT placed_sends.client, placed_sends.op FROM placed_sends JOIN elected
            ON elected.p = placed_sends.p
              AND elected.at_ns BETWEEN placed_sends.invoke_ns AND placed_sends.complete_ns
            WHERE placed_sends.outcome = 'ok' AND placed_sends.attempts >= 2""",
    ),
    RareState(
        name="five_sends_open_at_election",
        about="An idempotent producer had five or more records of one partition open when its "
        "leader changed, and all were acknowledged.",
        reads=("sends", "versions"),
        query="""SELECT elected.p, elected.epoch, placed_sends.client FROM elected JOIN placed_sends
            ON placed_sends.p = elected.p AND placed_sends.idempotent
              AND elected.at_ns > placed_sends.invoke_ns
              AND (elected.at_ns < placed_sends.complete_ns OR placed_sends.complete_ns IS NULL)
            GROUP BY ALL HAVING COUNT(*) >= 5 AND bool_and(placed_sends.outcome = 'ok')""",
    ),
    RareState(
        name="unclear_send_stored",
        about="A record whose producer gave up was stored all the same.",
        reads=("sends", "replicas"),
        query="""SELECT value_id FROM sends SEMI JOIN replicas USING (value_id)
            WHERE sends.outcome = 'info'""",
    ),
    RareState(
        name="producer_began_new_epoch",
        about="A producer got another producer id or epoch in the middle of its session.",
        reads=("sends",),
        query="""SELECT client, session FROM sends WHERE producer_id >= 0 GROUP BY ALL
            HAVING COUNT(DISTINCT producer_id) > 1 OR COUNT(DISTINCT producer_epoch) > 1""",
    ),
    RareState(
        name="acknowledged_without_offset",
        about="A broker acknowledged a batch without its offset, as it does for one that it has "
        "already.",
        reads=("sends",),
        query="SELECT * FROM sends WHERE outcome = 'ok' AND acks <> 0 AND sends.offset IS NULL",
    ),
    RareState(
        name="reader_lost_position",
        about="A reader's position did not exist any more, and it moved to another.",
        reads=("polls",),
        query="SELECT * FROM polls WHERE event = 'reset'",
    ),
    RareState(
        name="poll_spanned_epochs",
        about="One poll returned records of two leader epochs of a partition.",
        reads=("reads",),
        query="""SELECT client, session, poll, topic_id, partition FROM reads
            WHERE leader_epoch >= 0
            GROUP BY ALL HAVING COUNT(DISTINCT leader_epoch) > 1""",
    ),
    RareState(
        name="killed_with_open_sends",
        about="A client was killed while records of it were open.",
        reads=("sends", "admin_ops"),
        query="""SELECT DISTINCT sends.client FROM sends JOIN admin_ops
            ON admin_ops.act = 'kill client' AND admin_ops.subject = sends.client
            WHERE sends.outcome = 'info' AND sends.complete_ns IS NULL
              AND sends.invoke_ns < admin_ops.invoke_ns""",
    ),
    RareState(
        name="frame_lost_at_election",
        about="A fault dropped a request or an answer within a second of an election.",
        reads=("link_events", "versions"),
        query=f"{_AT_ELECTION} = 'drop'",
    ),
    RareState(
        name="request_repeated_at_election",
        about="A broker received a request a second time within a second of an election.",
        reads=("link_events", "versions"),
        query=f"{_AT_ELECTION} = 'duplicate'",
    ),
)
