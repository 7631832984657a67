"""Null cells whose values other rows contain: damage of the evidence, not of the cluster.

A null may be right (a record without a key, or of a foreign client). It is damage where other rows
with the same checksum have a value for the same record. Most of these questions run only where a
guarantee seems violated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from urteil.harness.verify import evidence
from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.part_cache import once_a_version
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.validation.cell_checks import AGAIN
from urteil.harness.verify.validation.part_checks import nulls

_RIVALS = """
FROM shared h JOIN slots n ON n.slot = h.slot JOIN slots v ON v.slot = h.slot
WHERE n.value_id IS NULL AND n.marks < 2 AND v.value_id IS NOT NULL
"""
_SHOWN = """
(SELECT e.value_id, MIN(e.key) AS low, MAX(e.key) AS high, COUNT(*) - COUNT(e.key) AS bare,
   MAX(CASE WHEN e.key = v.sent_key THEN 1 ELSE 0 END) AS as_sent,
   MIN(CASE WHEN e.key = v.sent_key THEN e.batch_crc END) AS crc_low,
   MAX(CASE WHEN e.key = v.sent_key THEN e.batch_crc END) AS crc_high
 FROM (SELECT r.value_id, r.key, CAST(NULL AS BIGINT) AS batch_crc FROM reads r
       UNION ALL SELECT l.value_id, l.key, l.batch_crc FROM replicas l) e
 JOIN irregular_values v ON v.value_id = e.value_id
 WHERE v.rekeyed = 1 AND v.sent = 1 GROUP BY e.value_id)
"""


def _bare(table: str, crc: str) -> str:
    return f"""
SELECT COUNT(*) AS n FROM {table} e JOIN {_SHOWN} k ON k.value_id = e.value_id
WHERE e.key IS NULL AND k.as_sent = 1 AND COALESCE(e.intact, TRUE)
  AND (k.crc_low IS NULL OR {crc} BETWEEN k.crc_low AND k.crc_high)"""


@dataclass(frozen=True, slots=True)
class Question:
    """How many cells of a column are null though other rows, named by `where`, have the value."""

    table: str
    column: str
    where: str
    query: str


QUESTIONS = (
    Question(
        "replicas",
        "value_id",
        "of batches that other replicas, or readers, have with it",
        f"""
SELECT COALESCE(SUM(d.copies), 0) AS n FROM (SELECT n.slot, MAX(n.copies) AS copies {_RIVALS}
  AND n.copies > 0 AND n.broken_disk = 0
  AND ((v.copies > 0 AND n.ident_low >= v.ident_low AND n.ident_high <= v.ident_high)
       OR (n.expected = 1 AND v.copies = 0 AND v.n_reads > 0)) GROUP BY n.slot) d""",
    ),
    Question(
        "reads",
        "value_id",
        "at offsets where others saw it",
        f"""
SELECT COALESCE(SUM(d.n_reads), 0) AS n FROM (SELECT n.slot, MAX(n.n_reads) AS n_reads {_RIVALS}
  AND n.n_reads > 0 AND n.copies = 0 AND n.broken_read = 0
  AND (v.n_reads > 0 OR v.copies > 0) GROUP BY n.slot) d""",
    ),
    Question(
        "replicas", "key", "of batches that others have with it", _bare("replicas", "e.batch_crc")
    ),
    Question("reads", "key", "of records that others have with it", _bare("reads", "k.crc_low")),
    Question(
        "sends",
        "key",
        "of records that all have with one, of clients that send none without",
        f"""
SELECT COUNT(*) AS n FROM irregular_values v JOIN {_SHOWN} k ON k.value_id = v.value_id
WHERE v.sent_key IS NULL AND k.bare = 0 AND k.low = k.high
  AND v.client NOT IN (SELECT o.client FROM vals o WHERE o.sent = 1 AND o.sent_key IS NULL
    AND o.rekeyed = 0 AND o.shown_slot IS NOT NULL)""",
    ),
)

SILENT = tuple(one for one in QUESTIONS if (one.table, one.column) == ("reads", "value_id"))
"""Those whose cells break nothing where readers during the run lack them."""


def tables_missing_values(
    engine: Engine, run_dir: Path, *, is_violated: bool
) -> Iterator[tuple[str, str]]:
    """Tables with such cells, each with a sentence. Unless a guarantee seems violated, most of them
    do not matter."""
    for question in QUESTIONS if is_violated else SILENT:
        number = engine.query(question.query)[0]["n"] if _nulls(run_dir, question) else 0
        if number:
            yield (
                question.table,
                f"{count_text(number, 'row')} without {question.column} {question.where} "
                f"(evidence/{question.table}): {AGAIN}",
            )


def _nulls(run_dir: Path, question: Question) -> int:
    return sum(_nulls_in(part, question.column) for part in evidence.files(run_dir, question.table))


@once_a_version
def _nulls_in(part: Path, column: str) -> int:
    return nulls(pq.ParquetFile(part), column)
