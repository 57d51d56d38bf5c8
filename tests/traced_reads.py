"""Which check reads which fact: every access to a field of a record, while a check runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dgxcheck.checks.engine import gaps
from dgxcheck.checks.siblings import kinds
from dgxcheck.components import device_facts
from dgxcheck.facts.record import Record

Heard = Callable[[object, str, str], None]
"""What is noted of each access: the record, the field and the file of the code that reads it."""


@contextmanager
def traced(heard: Heard) -> Iterator[None]:
    """Tells of every access within. What is remembered of a snapshot is collected afresh."""
    plain = Record.__getattribute__

    def heard_of(record: Record, name: str) -> Any:
        if name in type(record).__slots__:
            heard(record, name, sys._getframe(1).f_code.co_filename)
        return plain(record, name)

    _forget()
    Record.__getattribute__ = heard_of  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        del Record.__getattribute__
        _forget()


def _forget() -> None:
    """What was collected of whole snapshots, so that who asks again reads again."""
    for collected in (gaps.missing_in, device_facts.facts_of, device_facts._by_owner, kinds.rows_by_device):
        vars(collected)["forget"]()
