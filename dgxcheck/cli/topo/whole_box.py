"""What ``dgxcheck topo`` shows of the whole box: matrix, peer-to-peer, RDMA, tree, rings, one path, pictures."""

from __future__ import annotations

from dgxcheck.cli.topo.question import Answer, Question, two_devices
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.tool_outputs import NvidiaSmiTopo
from dgxcheck.output.origin import source_line
from dgxcheck.output.plain_text import visible
from dgxcheck.output.topo import matrix as topo_text
from dgxcheck.topology.model import Topology

CAPABILITIES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "prop"}


def matrix(asked: Question, pci: bool = False) -> Answer:
    """``-m``: complete where every path, every NVLink and every affinity is known."""
    topology, complete = asked.topology, _paths_known(asked.topology)
    if not pci:
        complete &= not topology.headline and all(link.nvlinks is not None for link in topology.links)
    if asked.form == "nvidia-smi":
        from dgxcheck.output.topo import nvidia_smi

        return nvidia_smi.matrix(topology, pci), complete
    from dgxcheck.output.topo import reference_graph

    remarks = [*(() if pci else reference_graph.text(topology)), *source_line(asked.machine.origin)]
    return asked.answer(
        complete, lambda: topo_text.matrix(topology, pci, asked.labels, asked.width, remarks),
        lambda: {} if pci else reference_graph.as_json(topology), notes=False,
    )  # fmt: skip


def matrix_pci(asked: Question) -> Answer:
    """``-mp``: NVLink does not count."""
    return matrix(asked, pci=True)


def p2p(asked: Question) -> Answer:
    """``-p2p``."""
    from dgxcheck.output.topo import peers as topo_peers

    capability = CAPABILITIES[asked.value]
    if isinstance(statuses := asked.snapshot.p2p, Missing) and isinstance(asked.snapshot.stated, NvidiaSmiTopo):
        from dgxcheck.topology.nvidia_smi_topo import statuses as stated_statuses

        statuses = stated_statuses(asked.topology, asked.snapshot.stated, capability) or statuses
    if isinstance(statuses, Missing):
        text = f"Peer-to-peer status is not known: {visible(str(statuses))}\n"
        return asked.answer(
            False, lambda: text, lambda: {"p2p": None, "p2p_reason": statuses.reason}, notes=False
        )
    known = not any(isinstance(getattr(status, capability), Missing) for status in statuses)
    as_nvidia_smi = asked.form == "nvidia-smi"
    return asked.answer(
        known and not asked.topology.gaps,
        lambda: topo_peers.p2p_matrix(asked.topology, statuses, capability, as_nvidia_smi, asked.width),
        lambda: topo_peers.p2p_as_json(asked.topology, statuses, capability), notes=not as_nvidia_smi,
    )  # fmt: skip


def path(asked: Question) -> Answer:
    """``--path A B``: complete where every hop is known."""
    from dgxcheck.output.topo import path as topo_path

    a, b = two_devices(asked.topology, asked.value)
    label = topo_text.cell(asked.topology.link(a, b), False, asked.labels)
    return asked.answer(
        topo_path.is_known(asked.topology, a, b),
        lambda: topo_path.path(asked.machine, a, b, label, asked.labels),
        lambda: topo_path.as_json(asked.machine, a, b),
    )


def tree(asked: Question) -> Answer:
    """``--tree``: complete where every link says how it is trained."""
    from dgxcheck.output.topo import tree as topo_tree

    topology, names = asked.topology, asked.snapshot.pci_names
    complete = not topology.gaps and topo_tree.all_links_known(topology)
    return asked.answer(complete, lambda: topo_tree.tree(topology, names), lambda: topo_tree.as_json(topology))


def rings(asked: Question) -> Answer:
    """``--rings``."""
    from dgxcheck.output.topo import reference_graph
    from dgxcheck.output.topo import rings as topo_rings
    from dgxcheck.topology.nvlinks import nvlink_graph

    return asked.answer(
        not isinstance(nvlink_graph(asked.topology), Missing), lambda: topo_rings.rings(asked.topology),
        lambda: topo_rings.as_json(asked.topology) | reference_graph.as_json(asked.topology),
    )  # fmt: skip


def _paths_known(topology: Topology) -> bool:
    affinities = (value for gpu in topology.gpus for value in (gpu.cpu_affinity, gpu.numa_node))
    complete = not topology.gaps and not any(isinstance(value, Missing) for value in affinities)
    return complete and all(link.pci for link in topology.links)


def peers(asked: Question) -> Answer:
    """``--peers``: complete where the verdict of every pair is known."""
    from dgxcheck.assessment.reach import peers as peers_of
    from dgxcheck.checks.engine.finding import Judgement
    from dgxcheck.output.topo import peers as topo_peers

    topology = asked.topology
    if isinstance(pairs := peers_of(asked.machine), Judgement):
        text = topo_peers.not_known(pairs)
        return asked.answer(pairs.reason == "not-supported", lambda: text, lambda: {"peers": []})
    complete = not topology.gaps and all(pair.verdict != "cannot tell" for pair in pairs)
    return asked.answer(
        complete, lambda: topo_peers.text(topology, pairs, asked.labels, asked.width), lambda: topo_peers.as_json(pairs)
    )


def rdma(asked: Question) -> Answer:
    """``--rdma``: complete where the verdict of every pair is known; a box without HCAs is known too."""
    from dgxcheck.assessment.reach import rdma as rdma_of
    from dgxcheck.checks.engine.finding import Judgement
    from dgxcheck.output.topo import rdma as topo_rdma

    topology = asked.topology
    if isinstance(pairs := rdma_of(asked.machine), Judgement):
        text = topo_rdma.not_judged(pairs)
        hcas = asked.snapshot.infiniband
        is_complete = not topology.gaps and not (isinstance(hcas, Missing) and hcas.gap is not Gap.ABSENT)
        return asked.answer(is_complete, lambda: text, lambda: {"rdma": []})
    complete = not topology.gaps and all(pair.verdict != "cannot tell" for pair in pairs)
    return asked.answer(
        complete, lambda: topo_rdma.text(topology, pairs, asked.width), lambda: topo_rdma.as_json(pairs)
    )


def picture(asked: Question) -> Answer:
    """``--format svg`` and ``dot`` without a question, or of ``--tree``: as complete as the matrix."""
    from dgxcheck.output.topo import picture as topo_picture

    marks = topo_picture.wiring_marks(asked.topology)
    return topo_picture.render(asked.machine, asked.form, marks, asked.nvme), matrix(asked)[1]


def picture_of_path(asked: Question) -> Answer:
    """``--format svg`` and ``dot`` of ``--path A B``."""
    from dgxcheck.output.topo import picture as topo_picture

    a, b = two_devices(asked.topology, asked.value)
    marks = [*topo_picture.wiring_marks(asked.topology), topo_picture.path_mark_of(asked.machine, a, b, asked.labels)]
    return topo_picture.render(asked.machine, asked.form, marks, asked.nvme), path(asked)[1]
