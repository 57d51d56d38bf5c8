"""IMEX, by which the nodes of an NVLink domain share GPU memory: whether it runs."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host, per_host
from dgxcheck.checks.engine.finding import Evidence, Judgement, as_evidence, judged, skip
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.nvml.gpu import Fabric

IMEX = "nvidia-imex"
IMEX_NODES = "/etc/nvidia-imex/nodes_config.cfg"


def _imex(box: Box) -> Judgement:
    """In an NVLink domain that may reach beyond the machine, warns if nvidia-imex is enabled and does not run: jobs
    then cannot share GPU memory with other nodes. Says how many nodes its list has. Not judged where it is not enabled;
    whether the other nodes run it is asked with nvidia-imex-ctl -N.

    Source: control group of the unit, /etc/nvidia-imex/nodes_config.cfg;
    https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/overview.html
    """
    fabrics = [row.fabric for row in rows(box.snapshot.gpu_modes)]
    if not any(isinstance(fabric, Fabric) and fabric.domain for fabric in fabrics):
        return skip("not-supported", "no GPU is in an NVLink domain of several machines")
    unit = next(unit for unit in need(box.snapshot.units) if unit.name == IMEX)
    running, enabled = need(unit.running), unit.enabled is True
    state = Evidence(IMEX, f"{'running' if running else 'not running'}, {'' if enabled else 'not '}enabled")
    if not running and not enabled:
        message = f"{IMEX} is not enabled: jobs use NVLinks of this machine alone, unless what starts them starts it"
        return skip("not-configured", message, state)
    nodes = need(box.snapshot.imex).nodes
    listed = f"its list is not readable ({nodes})" if isinstance(nodes, Missing) else f"its list has {nodes} nodes"
    message = f"{IMEX} {'runs' if running else 'is enabled and does not run'}, {listed}; of other nodes nothing is seen"
    evidence = (state, Evidence(IMEX_NODES, as_evidence(nodes)))
    return judged(Fault.IMEX_DOWN, message, int(running), 1, "", evidence, warns=not running)


CHECKS = (Check("driver.imex", per_host(_imex), host("IMEX")),)
