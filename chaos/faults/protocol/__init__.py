"""Faults that act on single requests and answers of Kafka's protocol."""
