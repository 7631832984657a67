"""From a scenario to a verdict: `runner` plays and judges a run, `judging` only judges it."""
