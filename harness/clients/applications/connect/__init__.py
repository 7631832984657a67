"""Kafka Connect in distributed mode: its workers, its REST interface, and the form of a record that
its connectors carry. `connect_files` and `connect_database` are the applications."""
