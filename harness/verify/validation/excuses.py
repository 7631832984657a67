"""Whether violations may be permitted, where times cannot be compared.

acks=1, an unclean election or a damaged disk permits the loss of what was sent before a certain
time. Where clocks cannot be compared, such a loss is unknown, neither permitted nor a violation.
"""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.verify.evidence import Row
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import Finding, GuaranteeResult


def may_be_excused(guarantee_result: GuaranteeResult, partitions: Sequence[Row]) -> bool:
    """Whether each violation among the findings may be permitted, as far as this shows without
    times: by `acks` of its record, or by what was lost in its partition."""
    guarantee = GUARANTEES[guarantee_result.name]
    spoilt = {
        (part["topic"], part["partition"]) for part in partitions if part["losses_ns"] is not None
    }
    broken = [finding for finding in guarantee_result.findings if finding.permitted is None]
    lost_elsewhere = bool(spoilt) and guarantee.copies_lost_elsewhere
    return (
        guarantee.excused_by_times
        and bool(broken)
        and all(lost_elsewhere or _may_be_permitted(finding, spoilt) for finding in broken)
    )


def _may_be_permitted(finding: Finding, spoilt: set[tuple[str, int]]) -> bool:
    acks = next((row.get("acks") for row in finding.records), None)
    return acks == 1 or (finding.topic, finding.partition) in spoilt
