"""Compiler of field tables into Python source: one decoder and one encoder for each version."""

from urteil.broker.wire.compiler.decode import compile_decoder
from urteil.broker.wire.compiler.encode import compile_encoder

__all__ = ["compile_decoder", "compile_encoder"]
