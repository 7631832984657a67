"""Rare states of transactions and their coordinators."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState


def _coordinator_moved(begin: str, end: str) -> str:
    """Transactions whose coordinator changed between two times."""
    return f"""SELECT DISTINCT txns.client, txns.session, txns.txn FROM txns
        JOIN coordinators
        ON coordinators.kind = 'transaction' AND coordinators.name = txns.transactional_id
          AND coordinators.prev_leader IS NOT NULL
          AND coordinators.from_ns BETWEEN {begin} AND {end}"""


def _leader_changed(begin: str, end: str) -> str:
    """Transactions with a partition whose leader changed between two times."""
    return f"""SELECT DISTINCT txns.client, txns.session, txns.txn FROM txns
        JOIN transaction_parts parts ON parts.client = txns.client
          AND parts.session = txns.session AND parts.txn = txns.txn
        JOIN elected ON elected.p = parts.p AND elected.at_ns BETWEEN {begin} AND {end}"""


_OPEN = _leader_changed("parts.first_ns", "txns.end_ns")

STATES = (
    RareState(
        name="transaction_over_two_leaders",
        about="A transaction was open while a partition to which it had written got a new leader.",
        reads=("txns", "sends", "versions"),
        query=_OPEN,
    ),
    RareState(
        name="coordinator_moved_in_transaction",
        about="The coordinator of a transaction changed before its end was requested.",
        reads=("txns", "coordinators"),
        query=_coordinator_moved("txns.begin_ns", "COALESCE(txns.commit_invoke_ns, txns.end_ns)"),
    ),
    RareState(
        name="coordinator_moved_between_phases",
        about="The coordinator changed between the request to commit and its answer.",
        reads=("txns", "coordinators"),
        query=_coordinator_moved("txns.commit_invoke_ns", "txns.end_ns"),
    ),
    RareState(
        name="leader_changed_during_commit",
        about="A partition of a transaction got a new leader between the request to commit and its "
        "answer.",
        reads=("txns", "sends", "versions"),
        query=_leader_changed("txns.commit_invoke_ns", "txns.end_ns"),
    ),
    RareState(
        name="fenced_producer_wrote_again",
        about="A producer sent a record after another producer with its transactional id had been "
        "initialised.",
        reads=("txns", "sends"),
        query="""SELECT DISTINCT txns.client, txns.session, txns.txn FROM txns
            JOIN txns successor ON successor.transactional_id = txns.transactional_id
              AND successor.init_invoke_ns > txns.init_ns
            JOIN sends ON sends.client = txns.client AND sends.session = txns.session
              AND sends.txn = txns.txn AND sends.invoke_ns > successor.init_ns""",
    ),
    RareState(
        name="aborted_while_client_wrote",
        about="A coordinator aborted a transaction whose client still wrote records or requested "
        "its commit.",
        reads=("txns", "sends", "replicas"),
        query="""SELECT DISTINCT txns.client, txns.session, txns.txn FROM transaction_ends ends
            JOIN txns ON txns.client = ends.client AND txns.session = ends.session
              AND txns.txn = ends.txn
            JOIN transaction_parts parts ON parts.client = txns.client
              AND parts.session = txns.session AND parts.txn = txns.txn
            WHERE ends.control = 'abort' AND ends.timestamp_ms * 1000000 < (
              SELECT wall_ns FROM load_span) + GREATEST(parts.last_ns, txns.commit_invoke_ns)""",
    ),
    RareState(
        name="unknown_commit_took_effect",
        about="A transaction was committed whose client never learned it.",
        reads=("txns", "sends", "replicas"),
        query="""SELECT DISTINCT txns.client, txns.session, txns.txn FROM txns
            JOIN transaction_ends ends ON ends.client = txns.client
              AND ends.session = txns.session AND ends.txn = txns.txn
            WHERE txns.outcome = 'unknown' AND ends.control = 'commit'""",
    ),
    RareState(
        name="unknown_commit_was_aborted",
        about="A transaction was aborted whose client had requested its commit and never learned "
        "the outcome.",
        reads=("txns", "sends", "replicas"),
        query="""SELECT DISTINCT txns.client, txns.session, txns.txn FROM txns
            JOIN transaction_ends ends ON ends.client = txns.client
              AND ends.session = txns.session AND ends.txn = txns.txn
            WHERE txns.outcome = 'unknown' AND txns.commit_invoke_ns IS NOT NULL
              AND ends.control = 'abort'""",
    ),
    RareState(
        name="marker_in_later_epoch",
        about="The marker of a transaction was written in a later leader epoch than its records.",
        reads=("replicas",),
        query="""SELECT DISTINCT topic_id, partition, marker_offset FROM markers
            WHERE follows_record AND record_epoch < leader_epoch""",
    ),
    RareState(
        name="two_producers_of_one_id",
        about="Two producers had transactions with one transactional id open at once.",
        reads=("txns",),
        query="""SELECT one.client, one.session, one.txn FROM txns one JOIN txns other
            ON other.transactional_id = one.transactional_id
              AND (other.client, other.session) <> (one.client, one.session)
              AND other.begin_ns BETWEEN one.begin_ns AND one.end_ns""",
    ),
    RareState(
        name="transaction_without_records",
        about="A transaction was committed without a record and without a position.",
        reads=("txns",),
        may_read=("sends", "commits"),
        query="""SELECT * FROM txns WHERE outcome = 'committed' AND NOT EXISTS (
              SELECT 1 FROM sends WHERE sends.client = txns.client
                AND sends.session = txns.session AND sends.txn = txns.txn)
            AND NOT EXISTS (
              SELECT 1 FROM commits WHERE commits.client = txns.client
                AND commits.session = txns.session AND commits.txn = txns.txn)""",
    ),
    RareState(
        name="transaction_open_for_ten_seconds",
        about="A transaction with records was open for ten seconds or longer.",
        reads=("txns", "sends"),
        query="""SELECT DISTINCT txns.client, txns.session, txns.txn FROM txns
            JOIN transaction_parts parts ON parts.client = txns.client
              AND parts.session = txns.session AND parts.txn = txns.txn
            WHERE txns.end_ns - txns.begin_ns >= seconds(10)""",
    ),
)
