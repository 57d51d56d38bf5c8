"""What ``dgxcheck topo --format env``, ``gres``, ``rankfile`` and ``nccl-xml`` print, for launchers and schedulers."""

from __future__ import annotations

from dgxcheck.cli.topo.question import Asked, Known
from dgxcheck.launch.cores import cores_of_nodes
from dgxcheck.launch.placement import placements


def whole(asked: Asked) -> Known:
    """Complete where nothing that the format holds had to be left out."""
    snapshot, topology = asked.snapshot, asked.topology
    placed, cores = placements(snapshot, topology), cores_of_nodes(snapshot)
    if asked.form == "gres":
        from dgxcheck.output.launch import gres

        return gres.render(snapshot, topology, placed, cores), gres.complete(snapshot, placed, cores)
    if asked.form == "rankfile":
        from dgxcheck.output.launch import rankfile

        return rankfile.render(placed, cores), rankfile.complete(placed, cores)
    if asked.form == "nccl-xml":
        from dgxcheck.output.launch import nccl_xml

        return nccl_xml.render(snapshot, topology, placed), bool(placed) and not topology.headline
    from dgxcheck.output.launch import env

    return env.render(placed), bool(placed)
