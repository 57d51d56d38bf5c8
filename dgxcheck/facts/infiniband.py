"""InfiniBand and RoCE devices: which PCI function is behind each."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Gap, Missing

_UNASKED = Missing(Gap.UNASKED, "/sys/class/infiniband")


class IbDevice(Record):
    """One entry of ``/sys/class/infiniband``."""

    name: str
    bdf: str | Missing
    """PCI function behind the device; absent for software devices and hosts without PCI parents."""
    is_vf: bool | Missing
    """True for an SR-IOV virtual function (it has a ``physfn`` link)."""
    node_guid: str | Missing
    fw_ver: str | Missing
    hca_type: str | Missing
    board_id: str | Missing
    sys_image_guid: str | Missing = _UNASKED
    node_type: str | Missing = _UNASKED
    """``CA``, ``RNIC``, ..."""
    node_desc: str | Missing = _UNASKED
