"""Turns field tables into Python source, one decode and one encode function a message version."""

from urteil.broker.wire.compiler.decode import compile_decoder
from urteil.broker.wire.compiler.encode import compile_encoder

__all__ = ["compile_decoder", "compile_encoder"]
