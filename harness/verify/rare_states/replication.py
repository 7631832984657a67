"""Rare states of replicas: the ISR, truncation, epochs in logs."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState

_TRUNCATED = """
SELECT new_epochs.p, new_epochs.epoch, placed_sends.client, placed_sends.complete_ns
FROM new_epochs
JOIN (SELECT p, epoch, MIN(start) AS start FROM epoch_starts GROUP BY ALL) starts
  ON starts.p = new_epochs.p AND starts.epoch = new_epochs.epoch
JOIN placed_sends ON placed_sends.p = new_epochs.p AND placed_sends.outcome = 'ok'
  AND placed_sends.offset >= starts.start AND placed_sends.complete_ns < new_epochs.at_ns
"""
"""Records that a leader acknowledged at or behind the offset at which a later epoch begins."""

STATES = (
    RareState(
        name="isr_of_one_lost_leader",
        about="The only replica in sync stopped leading, and another one or none took its place.",
        reads=("versions",),
        query="""SELECT * FROM new_epochs
            WHERE prev_isr_size = 1 AND replication > 1 AND prev_leader >= 0
              AND leader <> prev_leader""",
    ),
    RareState(
        name="isr_fell_to_one_at_once",
        about="One change of the ISR removed all followers, two or more.",
        reads=("versions",),
        query="SELECT * FROM versions WHERE isr_size = 1 AND prev_isr_size >= 3",
    ),
    RareState(
        name="acknowledged_by_isr_of_one",
        about="A record was acknowledged to acks=all while only the leader of several replicas "
        "was in sync.",
        reads=("versions", "sends"),
        query="""SELECT DISTINCT versions.p, versions.at_ns FROM versions JOIN placed_sends
            ON placed_sends.p = versions.p AND placed_sends.acks = -1
              AND placed_sends.outcome = 'ok' AND placed_sends.invoke_ns > versions.at_ns
              AND placed_sends.complete_ns < versions.until_ns
            WHERE versions.isr_size = 1 AND versions.replication > 1""",
    ),
    RareState(
        name="followers_left_in_turn",
        about="A second follower left the ISR within five seconds after the first, under the same "
        "leader.",
        reads=("versions",),
        query="""SELECT * FROM versions second JOIN versions first_one
            ON first_one.p = second.p AND first_one.at_ns = second.prev_at_ns
            WHERE second.isr_size < second.prev_isr_size AND second.epoch = second.prev_epoch
              AND first_one.isr_size < first_one.prev_isr_size
              AND first_one.epoch = first_one.prev_epoch
              AND second.at_ns - first_one.at_ns < seconds(5)""",
    ),
    RareState(
        name="replica_left_isr_again",
        about="A replica left the ISR again within ten seconds of its return.",
        reads=("absences",),
        query="""SELECT * FROM absences earlier JOIN absences later
            ON later.p = earlier.p AND later.broker = earlier.broker
            WHERE later.left_ns - earlier.back_ns BETWEEN 0 AND seconds(10)""",
    ),
    RareState(
        name="replica_missed_two_epochs",
        about="A replica returned to the ISR after two or more leader epochs had begun without it, "
        "so that it fetched across all of them.",
        reads=("absences",),
        query="SELECT * FROM absences WHERE back_epoch - left_epoch >= 2",
    ),
    RareState(
        name="former_leader_followed_successor",
        about="A replica that lost the lead and its place in the ISR returned to the ISR as a "
        "follower.",
        reads=("absences",),
        query="""SELECT * FROM absences
            WHERE led = 1 AND back_leader >= 0 AND back_leader <> broker
              AND back_epoch > left_epoch""",
    ),
    RareState(
        name="replica_never_returned",
        about="A replica left the ISR and was still out of it when the load ended.",
        reads=("absences",),
        query="SELECT * FROM absences WHERE back_ns IS NULL",
    ),
    RareState(
        name="acknowledged_record_truncated",
        about="An election truncated a record that its leader had acknowledged (the record's acks "
        "or an unclean election allow it).",
        reads=("versions", "epoch_starts", "sends"),
        query=f"SELECT DISTINCT p, epoch FROM ({_TRUNCATED})",
    ),
    RareState(
        name="several_batches_truncated",
        about="One election truncated acknowledged records of more than one batch.",
        reads=("versions", "epoch_starts", "sends"),
        query=f"""SELECT p, epoch FROM ({_TRUNCATED}) GROUP BY ALL
            HAVING COUNT(DISTINCT concat(client, ' ', complete_ns)) > 1""",
    ),
    RareState(
        name="epoch_without_records",
        about="A leader epoch began and ended without a record of its own, so that no log knows "
        "it.",
        reads=("versions", "epoch_starts"),
        query="""SELECT * FROM new_epochs WHERE leader >= 0
              AND NOT EXISTS (SELECT 1 FROM epoch_starts WHERE epoch_starts.p = new_epochs.p
                AND epoch_starts.epoch = new_epochs.epoch)
              AND EXISTS (SELECT 1 FROM epoch_starts WHERE epoch_starts.p = new_epochs.p
                AND epoch_starts.epoch > new_epochs.epoch)""",
    ),
    RareState(
        name="cut_leader_shrank_isr",
        about="A leader whose links were cut removed a follower from the ISR.",
        reads=("versions", "strikes"),
        query="""SELECT DISTINCT versions.p, versions.at_ns FROM versions JOIN strikes
            ON strikes.broker = versions.leader AND among('cuts_links', strikes.effects)
              AND versions.at_ns BETWEEN strikes.begin_ns AND strikes.end_ns
            WHERE versions.isr_size < versions.prev_isr_size
              AND versions.epoch = versions.prev_epoch""",
    ),
)
