"""How often an application promises that each input record takes effect.

This module imports nothing of the lab: the command line reads it at each start.
"""

from __future__ import annotations

from typing import Literal, get_args

Promise = Literal["at-most-once", "at-least-once", "exactly-once"]
PROMISES: tuple[Promise, ...] = get_args(Promise)
AT_LEAST_ONCE: Promise = "at-least-once"
EXACTLY_ONCE: Promise = "exactly-once"
