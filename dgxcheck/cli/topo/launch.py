"""What ``dgxcheck topo --format`` prints for launchers and schedulers: env, gres, rankfile, nccl-xml and nfd."""

from __future__ import annotations

from dgxcheck.cli.topo.question import Answer, Question
from dgxcheck.facts.missing import Missing
from dgxcheck.launch import cores_of_nodes, placements
from dgxcheck.output import launch
from dgxcheck.output.plain_text import lines


def whole(asked: Question) -> Answer:
    """Complete where nothing that the format holds had to be left out."""
    snapshot, topology = asked.snapshot, asked.topology
    placed, cores = placements(snapshot, topology), cores_of_nodes(snapshot)
    whole_box = bool(placed) and len(placed) == len(topology.gpus)
    with_cores = whole_box and all(each.numa_node in cores for each in placed)
    if asked.form == "gres":
        complete = with_cores and launch.has_nodes(snapshot, placed)
        return lines(launch.gres(snapshot, topology, placed, cores)), complete
    if asked.form == "rankfile":
        return lines(launch.rankfile(placed, cores)), with_cores
    if asked.form == "nfd":
        return lines(launch.nfd(topology, placed)), whole_box and launch.has_graph(topology)
    if asked.form == "nccl-xml":
        from dgxcheck.output import nccl_xml

        return nccl_xml.render(snapshot, topology, placed), whole_box and not topology.headline
    is_complete = not any(isinstance(fact, Missing) for each in placed for fact in (each.cpulist, each.numa_node))
    return lines(launch.env(placed)), whole_box and is_complete
