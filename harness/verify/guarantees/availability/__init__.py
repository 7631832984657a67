"""Progress: brokers run, partitions accept and deliver records, recovery ends in time."""
