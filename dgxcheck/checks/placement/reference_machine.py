"""Is a box the reference machine that it is compared with, or does it only have the same GPUs?"""

from __future__ import annotations

from dgxcheck.checks.placement.misplaced import all_in_place
from dgxcheck.checks.placement.placement import fabric_adapters
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Missing
from dgxcheck.profiles.model import SelectedProfile
from dgxcheck.topology.model import Machine


def is_reference_machine(box: Machine, choice: SelectedProfile) -> bool:
    """The user or the DMI product name says so, or the firmware names no other and all GPUs and HCAs are wired so.

    Boards of eight GPUs and virtual machines with the GPUs of a DGX are machines of other makers.
    """
    if choice.how != "gpus":
        return True
    profile = choice.profile
    product = box.snapshot.host.dmi.product_name if isinstance(box.snapshot.host, Host) else box.snapshot.host
    if profile.products and not isinstance(product, Missing):
        return False
    gpus, adapters = box.topology.gpus, fabric_adapters(box)
    hcas = profile.numbers.get("network.hcas")
    if len(gpus) != sum(wiring.gpus for wiring in profile.wiring) or (hcas and len(adapters) < hcas.value):
        return False
    has_hcas = any(wiring.to_hcas for wiring in profile.wiring)
    return all_in_place(gpus, gpus, box.topology, profile.wiring, lambda wiring: wiring.to_gpus) and (
        not has_hcas or all_in_place(gpus, adapters, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    )
