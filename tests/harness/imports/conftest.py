"""Judgements of imported histories share DuckDB's answers, as those of made-up runs do."""

from __future__ import annotations

from tests.harness.verify.conftest import _shared_answers

__all__ = ["_shared_answers"]
