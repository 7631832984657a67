"""Raw requests of Kafka's protocol, each sent to a chosen broker."""
