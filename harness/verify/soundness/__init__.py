"""Whether the evidence may be believed: what is damaged or missing makes a verdict UNKNOWN."""
