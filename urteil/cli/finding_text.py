"""The findings of one guarantee as text, a cycle edge by edge."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.result import GuaranteeResult

SHOWN = 10


def finding_lines(judged: GuaranteeResult) -> Iterator[str]:
    """The guarantee's promise and its first findings."""
    counts = f"{count_text(judged.violations, 'violation')}, {judged.permitted} permitted"
    yield f"{judged.name} {judged.status}: {counts}"
    yield f"  promise: {judged.promise}"
    for finding in judged.findings[:SHOWN]:
        why = "" if finding.permitted is None else f", permitted: {finding.permitted}"
        yield f"  {finding.sub_kind}{why}"
        way = next((record["txns"] for record in finding.records if record.get("txns")), None)
        if way is None:
            yield f"    {finding.sentence}"
            continue
        yield f"    {way}"
        for edge in finding.sentence.split("; "):
            yield f"      {edge.removesuffix('.')}"
