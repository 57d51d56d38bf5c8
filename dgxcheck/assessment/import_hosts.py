"""Texts of several hosts: one box is made of those of one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

from dgxcheck.facts.missing import BadInput

SHOWN = 8


class Owned(Protocol):
    """Something of one host."""

    @property
    def host(self) -> str: ...


T = TypeVar("T", bound=Owned)


def of_host(parts: Sequence[T], host: str, others: Collection[str] = ()) -> list[T]:
    """The outputs of one host, and those of unknown origin; BadInput if several hosts remain.

    ``others`` are hosts that were named elsewhere.
    """
    hosts = sorted({part.host for part in parts} - {""})
    if host and host not in hosts and host not in others:
        raise BadInput(f"--host {host}: {_have(hosts)}")
    if len(hosts) > 1 and not host:
        raise BadInput(f"{_have(hosts)}; choose one with --host NAME")
    return [part for part in parts if part.host in ("", host or part.host)]


def _have(hosts: Sequence[str]) -> str:
    if not hosts:
        return "no prefix, heading or prompt in the texts names a host"
    more = f" and {len(hosts) - SHOWN} more" if len(hosts) > SHOWN else ""
    if len(hosts) == 1:
        return f"the texts come from host {hosts[0]}"
    return f"the texts come from several hosts: {', '.join(hosts[:SHOWN])}{more}"
