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
from urteil.harness.verify.validation.part_checks import count_nulls

_RIVALS = """
FROM shared JOIN slots null_slots ON null_slots.slot = shared.slot JOIN slots
  ON slots.slot = shared.slot
WHERE null_slots.value_id IS NULL AND null_slots.marks < 2 AND slots.value_id IS NOT NULL
"""
_SHOWN = """
(SELECT copies.value_id, MIN(copies.key) AS low, MAX(copies.key) AS high,
   COUNT(*) - COUNT(copies.key) AS bare,
   MAX(CASE WHEN copies.key = records.sent_key THEN 1 ELSE 0 END) AS as_sent,
   MIN(CASE WHEN copies.key = records.sent_key THEN copies.batch_crc END) AS crc_low,
   MAX(CASE WHEN copies.key = records.sent_key THEN copies.batch_crc END) AS crc_high
 FROM (SELECT reads.value_id, reads.key, CAST(NULL AS BIGINT) AS batch_crc FROM reads
       UNION ALL SELECT replicas.value_id, replicas.key, replicas.batch_crc FROM replicas) copies
 JOIN irregular_values records ON records.value_id = copies.value_id
 WHERE records.rekeyed = 1 AND records.sent = 1 GROUP BY copies.value_id)
"""


def _bare(table: str, crc: str) -> str:
    return f"""
SELECT COUNT(*) AS n FROM {table} cells JOIN {_SHOWN} shown_keys
  ON shown_keys.value_id = cells.value_id
WHERE cells.key IS NULL AND shown_keys.as_sent = 1 AND COALESCE(cells.intact, TRUE)
  AND (shown_keys.crc_low IS NULL OR {crc} BETWEEN shown_keys.crc_low AND shown_keys.crc_high)"""


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
SELECT COALESCE(SUM(cells.copies), 0) AS n
  FROM (SELECT null_slots.slot, MAX(null_slots.copies) AS copies {_RIVALS}
  AND null_slots.copies > 0 AND null_slots.broken_disk = 0
  AND ((slots.copies > 0 AND null_slots.ident_low >= slots.ident_low
        AND null_slots.ident_high <= slots.ident_high)
       OR (null_slots.expected = 1 AND slots.copies = 0 AND slots.n_reads > 0))
         GROUP BY null_slots.slot) cells""",
    ),
    Question(
        "reads",
        "value_id",
        "at offsets where others saw it",
        f"""
SELECT COALESCE(SUM(cells.n_reads), 0) AS n
  FROM (SELECT null_slots.slot, MAX(null_slots.n_reads) AS n_reads {_RIVALS}
  AND null_slots.n_reads > 0 AND null_slots.copies = 0 AND null_slots.broken_read = 0
  AND (slots.n_reads > 0 OR slots.copies > 0) GROUP BY null_slots.slot) cells""",
    ),
    Question(
        "replicas",
        "key",
        "of batches that others have with it",
        _bare("replicas", "cells.batch_crc"),
    ),
    Question(
        "reads", "key", "of records that others have with it", _bare("reads", "shown_keys.crc_low")
    ),
    Question(
        "sends",
        "key",
        "of records that all have with one, of clients that send none without",
        f"""
SELECT COUNT(*) AS n FROM irregular_values records JOIN {_SHOWN} shown_keys
  ON shown_keys.value_id = records.value_id
WHERE records.sent_key IS NULL AND shown_keys.bare = 0 AND shown_keys.low = shown_keys.high
  AND records.client NOT IN (SELECT client FROM records WHERE sent = 1 AND sent_key IS NULL
    AND rekeyed = 0 AND shown_slot IS NOT NULL)""",
    ),
)

SILENT = tuple(
    question for question in QUESTIONS if (question.table, question.column) == ("reads", "value_id")
)
"""Those whose cells break nothing where readers during the run lack them."""


def tables_missing_values(
    engine: Engine, run_dir: Path, *, is_violated: bool
) -> Iterator[tuple[str, str]]:
    """Tables with such cells, each with a sentence. Unless a guarantee seems violated, most of them
    do not matter."""
    for question in QUESTIONS if is_violated else SILENT:
        number = engine.query(question.query)[0]["n"] if _count_nulls(run_dir, question) else 0
        if number:
            yield (
                question.table,
                f"{count_text(number, 'row')} without {question.column} {question.where} "
                f"(evidence/{question.table}): {AGAIN}",
            )


def _count_nulls(run_dir: Path, question: Question) -> int:
    return sum(_nulls_in(part, question.column) for part in evidence.files(run_dir, question.table))


@once_a_version
def _nulls_in(part: Path, column: str) -> int:
    return count_nulls(pq.ParquetFile(part), column)
