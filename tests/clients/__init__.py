"""Clients that we did not write, at work on our broker and on Apache Kafka."""
