"""From a scenario to a verdict: `runner` plays and judges, `judging` only judges."""
