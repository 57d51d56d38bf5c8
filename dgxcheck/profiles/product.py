"""Is a firmware's product name the name of a reference machine?

Firmware writes the same machine with and without its vendor, with the words run together, and with a part number or
the GPU memory behind: ``NVIDIA DGX-2``, ``DGXA100 920-23687-2530-000``, ``DGX-1 with V100-32``.
"""

from __future__ import annotations

import re

_FILLERS = {"nvidia", "with", "tesla", "system"}
_JOINED = re.compile(r"^dgx(?=[a-z0-9])")
_SIZE_OR_PART = re.compile(r"\d+(gb)?")
_WORD = re.compile(r"[a-z0-9]+")


def is_product(name: str, product: str) -> bool:
    """``name`` begins with the words of ``product``, and only a part number or a memory size follows.

    A word more makes another machine: ``DGX Station A100`` is no ``DGX Station``.
    """
    given, expected = _words(name), _words(product)
    rest = given[len(expected) :]
    if name.strip() == product.strip():
        return bool(name.strip())
    return bool(expected) and given[: len(expected)] == expected and all(map(_SIZE_OR_PART.fullmatch, rest))


def _words(name: str) -> list[str]:
    words = [word for word in _WORD.findall(name.lower()) if word not in _FILLERS]
    return [part for word in words for part in _JOINED.sub("dgx ", word).split()]
