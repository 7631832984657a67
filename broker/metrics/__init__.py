"""What the broker counts, and how Prometheus reads it: plain numbers, made text by a scrape."""
