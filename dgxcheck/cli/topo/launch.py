"""What ``dgxcheck topo --format`` prints for launchers and schedulers: env, gres, rankfile, nccl-xml and nfd."""

from __future__ import annotations

from dgxcheck.cli.topo.question import Asked, Known
from dgxcheck.facts.missing import Missing
from dgxcheck.launch.cores import cores_of_nodes
from dgxcheck.launch.placement import placements


def whole(asked: Asked) -> Known:
    """Complete where nothing that the format holds had to be left out."""
    snapshot, topology = asked.snapshot, asked.topology
    placed, cores = placements(snapshot, topology), cores_of_nodes(snapshot)
    whole_box = bool(placed) and len(placed) == len(topology.gpus)
    if asked.form == "gres":
        from dgxcheck.output.launch import gres

        return gres.render(snapshot, topology, placed, cores), whole_box and gres.complete(snapshot, placed, cores)
    if asked.form == "rankfile":
        from dgxcheck.output.launch import rankfile

        return rankfile.render(placed, cores), whole_box and rankfile.complete(placed, cores)
    if asked.form == "nfd":
        from dgxcheck.output.launch import nfd

        return nfd.render(topology, placed), whole_box and nfd.complete(topology)
    if asked.form == "nccl-xml":
        from dgxcheck.output.launch import nccl_xml

        return nccl_xml.render(snapshot, topology, placed), whole_box and not topology.headline
    from dgxcheck.output.launch import env

    known = not any(isinstance(fact, Missing) for each in placed for fact in (each.cpulist, each.numa_node))
    return env.render(placed), whole_box and known
