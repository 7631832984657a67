"""From a scenario to a verdict: `run_scenario` plays and judges, `judge_again` only judges."""

from urteil.harness.runner.runner import judge_again, run_scenario

__all__ = ["judge_again", "run_scenario"]
