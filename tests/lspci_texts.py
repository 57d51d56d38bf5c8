"""A small machine as lspci shows it with each of its options, for tests of the readers."""

from __future__ import annotations

_FUNCTIONS = (
    ("00:00.0", "0600", "Host bridge", "8086:09a2", "Intel Corporation Ice Lake Memory Map", ""),
    ("00:1f.0", "0601", "ISA bridge", "8086:a242", "Intel Corporation C620 LPC Controller", ""),
    ("00:1f.2", "0580", "Memory controller", "8086:a243", "Intel Corporation C620 PMC", ""),
    ("00:1f.4", "0c05", "SMBus", "8086:a244", "Intel Corporation C620 SMBus", "i801_smbus"),
    ("4a:02.0", "0604", "PCI bridge", "8086:347a", "Intel Corporation Device 347a", "pcieport"),
    ("4b:00.0", "0302", "3D controller", "10de:20b5", "NVIDIA Corporation GA100 [A100 PCIe 80GB]", "nvidia"),
    ("98:00.0", "0207", "Infiniband controller", "15b3:101b", "Mellanox Technologies [ConnectX-6]", "mlx5_core"),
    ("98:00.1", "0207", "Infiniband controller", "15b3:101b", "Mellanox Technologies [ConnectX-6]", "mlx5_core"),
    ("98:00.2", "0207", "Infiniband controller", "15b3:101c", "Mellanox Technologies MT28908 [VF]", "mlx5_core"),
    ("98:00.3", "0207", "Infiniband controller", "15b3:101c", "Mellanox Technologies MT28908 [VF]", "mlx5_core"),
)  # fmt: skip
_LINKS = {"4b:00.0": ("16", "16", "2.5", "8"), "4a:02.0": ("16", "16", "2.5", "8")}
"""GT/s and lanes that each supports, and those that it has."""
LINKED = "4b:00.0"


def _verbose(bdf: str, driver: str) -> list[str]:
    rows = ["\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx+",
            "\tStatus: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- INTx-"]  # fmt: skip
    if bdf == "4a:02.0":
        rows.append("\tBus: primary=4a, secondary=4b, subordinate=4b, sec-latency=0")
    if bdf == LINKED:
        rows.append("\tRegion 0: Memory at d0000000 (32-bit, non-prefetchable) [size=16M]")
    if bdf in _LINKS:
        speed, lanes, now, width = _LINKS[bdf]
        rows += ["\tCapabilities: [68] Express (v2) Endpoint, MSI 00",
                 f"\t\tLnkCap:\tPort #0, Speed {speed}GT/s, Width x{lanes}, ASPM not supported",
                 f"\t\tLnkSta:\tSpeed {now}GT/s (downgraded), Width x{width} (downgraded)",
                 "\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-"]  # fmt: skip
    return [*rows, f"\tKernel driver in use: {driver}", ""] if driver else [*rows, ""]


def _config(bdf: str, code: str, ids: str) -> list[str]:
    space = bytearray(256)
    space[0:2], space[2:4] = (int(each, 16).to_bytes(2, "little") for each in ids.split(":"))
    space[10:12] = int(code, 16).to_bytes(2, "little")
    if bdf == "4a:02.0":
        space[0x0E], space[0x19] = 1, 0x4B
    return [*(f"{at:02x}: {space[at : at + 16].hex(' ')}" for at in range(0, 256, 16)), ""]


def _heads(form: str) -> list[str]:
    return [form.format(bdf=bdf, code=code, words=words, ids=ids, name=name)
            for bdf, code, words, ids, name, _ in _FUNCTIONS]  # fmt: skip


_NAMED = "{bdf} {words}: {name}"
_BOTH = "{bdf} {words} [{code}]: {name} [{ids}] (rev a1)"
_DRAWN = """\
-+-[0000:98]---00.0{0}
 +-[0000:4a]---02.0-[4b]----00.0{1}
 \\-[0000:00]-+-00.0{2}
             +-1f.0{2}
             \\-1f.4{2}
"""
LSPCI = {
    "lspci": "\n".join(_heads(_NAMED)),
    "lspci -n": "\n".join(_heads("{bdf} {code}: {ids} (rev a1)")),
    "lspci -nn": "\n".join(_heads(_BOTH)),
    "lspci -D": "\n".join(_heads(f"0000:{_NAMED}")),
    "lspci -nnD": "\n".join(_heads(f"0000:{_BOTH}")),
    "lspci -vv": "\n".join(
        line for head, row in zip(_heads(_NAMED), _FUNCTIONS, strict=True) for line in (head, *_verbose(row[0], row[5]))
    ),
    "lspci -nnvv": "\n".join(
        line for head, row in zip(_heads(_BOTH), _FUNCTIONS, strict=True) for line in (head, *_verbose(row[0], row[5]))
    ),
    "lspci -xxx": "\n".join(
        line for head, row in zip(_heads(_NAMED), _FUNCTIONS, strict=True)
        for line in (head, *_config(row[0], row[1], row[3]))
    ),
    "lspci -t": _DRAWN.format("", "", ""),
    "lspci -tv": _DRAWN.format("  Mellanox Technologies MT28908 [ConnectX-6]",
                               "  NVIDIA Corporation GA100 [A100 PCIe 80GB]", "  Intel Corporation Device 09a2"),
    "grep LnkSta": "\n".join(
        line for head, row in zip(_heads(_NAMED), _FUNCTIONS, strict=True)
        for line in (head, *(each for each in _verbose(row[0], row[5]) if "LnkCap" in each or "LnkSta" in each))
    ),
    "LnkSta alone": "\n".join(_verbose(LINKED, "")[3:7]),
}  # fmt: skip
"""Text by command."""
