"""Questions to brokers that have one right answer."""
