"""Ask everything and write docs/broker/conformance.md: `python -m tests.conformance`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.conformance.ledger import Ledger
from tests.conformance.page import PAGE, page
from tests.conformance.pair import standing_or_fresh
from tests.conformance.questions import all_questions


def main() -> int:
    """0 when nothing differs for no reason and no permission is idle, else 1 with what is wrong."""
    ledger, questions = Ledger(), all_questions()
    with tempfile.TemporaryDirectory() as folder, standing_or_fresh(Path(folder)) as pair:
        for question in questions:
            for line in ledger.judge(question, pair.ours, pair.theirs):
                print(f"{question}: {line}")
    stale = ledger.stale(questions)
    for entry in stale:
        print(f"excuses nothing any more: {entry}")
    PAGE.write_text(page(ledger, questions))
    print(ledger.summary())
    return bool(ledger.open or stale)


if __name__ == "__main__":
    sys.exit(main())
