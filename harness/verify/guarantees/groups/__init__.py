"""Consumer groups: one owner per partition, durable offsets, fenced former members."""
