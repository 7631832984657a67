"""Log compaction: a compacted log keeps the newest record of each key (Kafka's `LogCleaner`).

A cleaning reads the log twice. The map pass collects the newest offset of each key in the dirty
part; the rewrite pass copies the records that stay from groups of segments to new `.cleaned` files.
Both passes run in slices on a background thread. The event loop starts them, checks that the log
did not change meanwhile, and swaps the new segments in.
"""
