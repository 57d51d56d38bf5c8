"""Which NVLinks and GPUs a finding about NVLink can come from."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.blame import device_of
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Subject
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import all_nvlinks, device_part, nvlinks_between, nvlinks_of


def nvlinks(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NVLinks of the pair, or those to the far end of one link or of all links of a GPU; then the NVLink ports of
    the GPUs. The NVLink graph for a finding about the host.
    """
    gpu = device_of(box, subject)
    if gpu is None:
        yield host_part("NVLink graph")
        return
    peer = device_of(box, subject.peer) if subject.peer is not None else None
    if peer is None:
        yield from nvlinks_of(box, gpu, int(subject.part) if subject.part.isdecimal() else None)
        yield device_part(box, gpu, "NVLink")
        return
    yield nvlinks_between(box, gpu, peer)
    yield device_part(box, gpu, "NVLink")
    yield device_part(box, peer, "NVLink")


def nvlinks_of_all(box: Box, subject: Subject, judgement: Judgement) -> Component:
    """Where every GPU has its NVLinks down: the NVSwitches, else the driver's setting."""
    return all_nvlinks(box)
