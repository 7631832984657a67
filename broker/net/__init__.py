"""The network: sockets, connections, limits, TLS and SASL, and channels to other brokers."""
