"""The Kafka protocol on the wire: messages, framing, record batches, error codes.

Everything here is pure: bytes in, values out. Nothing reads a clock or a socket.
"""
