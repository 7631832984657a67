"""All questions with known answers, by subject. Importing it imports every message of
kafka-python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from urteil.harness.conformance.append_validation import APPENDS
from urteil.harness.conformance.compaction import COMPACTION
from urteil.harness.conformance.compression import CODED
from urteil.harness.conformance.coordinator_handover import TAKEOVERS
from urteil.harness.conformance.fetches import FETCHES
from urteil.harness.conformance.groups import GROUPS
from urteil.harness.conformance.invalid_transaction_requests import ENDINGS
from urteil.harness.conformance.produce_responses import PRODUCING
from urteil.harness.conformance.question import Question
from urteil.harness.conformance.quotas import QUOTAS
from urteil.harness.conformance.reassignments import REASSIGNMENTS
from urteil.harness.conformance.rebalances import REBALANCES
from urteil.harness.conformance.records import DELETIONS, RECORDS
from urteil.harness.conformance.request_versions import CONNECTIONS
from urteil.harness.conformance.settings import SETTINGS
from urteil.harness.conformance.topics import TOPICS
from urteil.harness.conformance.transactions import TRANSACTIONS

_REPLICAS = *REASSIGNMENTS, *DELETIONS
_ADMINISTRATION = *TOPICS, *SETTINGS, *_REPLICAS

SUBJECTS: Mapping[str, Sequence[Question]] = {
    "topics": TOPICS,
    "settings": SETTINGS,
    "replicas": _REPLICAS,
    "administration": _ADMINISTRATION,
    "all": (
        *COMPACTION,
        *CONNECTIONS,
        *GROUPS,
        *REBALANCES,
        *RECORDS,
        *APPENDS,
        *PRODUCING,
        *FETCHES,
        *CODED,
        *_ADMINISTRATION,
        *TRANSACTIONS,
        *ENDINGS,
        *QUOTAS,
        *TAKEOVERS,
    ),
}
