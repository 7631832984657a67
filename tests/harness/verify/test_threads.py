"""A judgement that hangs does not keep its process alive."""

from __future__ import annotations

import subprocess
import sys

STUCK = """
import threading
from urteil.harness.verify.threads import threads

reached, never = threading.Event(), threading.Event()

def ask(number):
    reached.set()
    never.wait()

def judge():
    with threads(2) as pool:
        pool.map(ask, range(9), chunksize=1)

threading.Thread(target=judge, daemon=True).start()
reached.wait()
print("over")
"""


def test_process_ends_although_a_query_does_not() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=240, check=True
    )
    assert (ended.stdout, ended.stderr) == ("over\n", "")
