"""The questions of all subjects: every module here registers its own."""

from __future__ import annotations

import importlib
import pkgutil

from tests.conformance.questions.registry import QUESTIONS, Question


def all_questions() -> list[Question]:
    """Every question, subject by subject in the order of the modules' names."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return QUESTIONS
