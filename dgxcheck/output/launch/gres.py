"""``gres.conf`` of Slurm: a line per GPU with its cores and NVLinks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.facts.gpu import Gpu, Nvml
from dgxcheck.facts.host import Cpu, Host
from dgxcheck.facts.missing import Missing
from dgxcheck.launch.placement import Placement
from dgxcheck.output.plain_text import lines
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Topology

_MODEL = re.compile(r"(?<![A-Za-z0-9])(?:RTX[ -]?)?[A-Z]{1,2}[0-9]{2,4}[A-Z]?(?![0-9])")


def render(snapshot: Snapshot, topology: Topology, placed: Sequence[Placement], cores: Mapping[int, range]) -> str:
    """``Links`` counts NVLinks to each GPU in the order of the bus, -1 is the GPU itself; gres.conf(5).

    ``File`` is the device node by the driver's minor number, which need not be NVML's index.
    """
    return lines(_lines(snapshot, topology, placed, cores))


def complete(snapshot: Snapshot, placed: Sequence[Placement], cores: Mapping[int, range]) -> bool:
    """Has every GPU its device node and its cores?"""
    gpus = _gpus(snapshot)
    known = {bdf for bdf, gpu in gpus.items() if not isinstance(gpu.minor, Missing)}
    return bool(placed) and all(each.gpu.bdf in known and each.numa_node in cores for each in placed)


def _lines(
    snapshot: Snapshot, topology: Topology, placed: Sequence[Placement], cores: Mapping[int, range]
) -> Iterator[str]:
    gpus, host = _gpus(snapshot), snapshot.host
    sockets = host.cpu.sockets if isinstance(host, Host) and isinstance(host.cpu, Cpu) else len(cores)
    if len(cores) != sockets:
        yield "# these cores are a part of a socket: slurm.conf needs SlurmdParameters=numa_node_as_socket"
    for each in placed:
        gpu = gpus.get(each.gpu.bdf or "")
        if gpu is None or isinstance(gpu.minor, Missing):
            yield f"# {each.gpu.name} {each.gpu.bdf}: its device node is not known"
            continue
        words = ["Name=gpu", *_type(gpu), f"File=/dev/nvidia{gpu.minor}"]
        run = None if isinstance(each.numa_node, Missing) else cores.get(each.numa_node)
        words += [] if run is None else [f"Cores={run.start}-{run.stop - 1}"]
        links = _links(topology, each, placed)
        words += [f"Links={','.join(map(str, links))}"] if links else []
        yield " ".join(words)


def _gpus(snapshot: Snapshot) -> Mapping[str, Gpu]:
    return {gpu.bdf: gpu for gpu in snapshot.gpu.gpus} if isinstance(snapshot.gpu, Nvml) else {}


def _type(gpu: Gpu) -> list[str]:
    """``Type=v100`` of ``Tesla V100-SXM2-16GB``."""
    found = _MODEL.search(gpu.name) if isinstance(gpu.name, str) else None
    return [f"Type={re.sub('[^a-z0-9]', '', found[0].lower())}"] if found else []


def _links(topology: Topology, each: Placement, placed: Sequence[Placement]) -> list[int]:
    """Empty without NVLinks, and where a number is not known."""
    found = [-1 if other is each else topology.link(each.gpu, other.gpu).nvlinks for other in placed]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) and max(known) > 0 else []
