"""The readers of benchmark outputs, in the order in which they look at a text."""

from __future__ import annotations

from dgxcheck.readers import p2p_test
from dgxcheck.readers.model import Reader

READERS: tuple[Reader, ...] = (p2p_test.read,)
