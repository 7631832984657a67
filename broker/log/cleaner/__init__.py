"""Log compaction: of each key the newest record is kept (Kafka's `LogCleaner`)."""
