"""The arithmetic of PTX on integers, which the interpreter cuts to 32 or 64 bits, and on bit patterns of f32."""

from __future__ import annotations

import struct
from collections.abc import Callable

ALU: dict[str, Callable[..., int]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mad": lambda a, b, c: a * b + c,
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "min": min,
}
FLOAT: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,  # the product of two f32 is exact in Python's float
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
}


def bits(number: float) -> int:
    """The bit pattern of a number, rounded to f32."""
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def number(pattern: int) -> float:
    """The number of an f32 bit pattern."""
    return float(struct.unpack("<f", struct.pack("<I", pattern))[0])
