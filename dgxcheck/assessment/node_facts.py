"""What a fleet compares of one machine: versions, settings, the NVLink domain, and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dgxcheck.components.device_facts import records
from dgxcheck.facts.host import Dmi, NetInterface
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.inventory import Part
from dgxcheck.facts.missing import Json, Missing, rows, text_of
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.nvml.gpu import Fabric, GpuModes, Nvml
from dgxcheck.facts.pci import Bar, ConfigSpace, PciBars
from dgxcheck.facts.typical import gathered
from dgxcheck.facts.values import Rows, Value, cuda_version, is_inside, label, leaves, text
from dgxcheck.settings import Settings
from dgxcheck.survey import Snapshot


def versions(snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
    """What could be read, by name: ``driver``, ``kernel driver`` (open or not), ``cuda``, ``vbios``, ``inforom``,
    ``cpu``, ``memory``, ``kernel``, ``bios``, ``os``, and the firmware of each model of HCA by its board id
    (PSID); each with its distinct values in order.
    """
    return _distinct(_read(snapshot))


def settings(snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
    """The same of settings that siblings have in common, by kind of device and label: ``GPU power limit``."""
    return _distinct(_settings(snapshot))


def _distinct(read: Iterable[tuple[str, str | Missing]]) -> Mapping[str, tuple[str, ...]]:
    found = gathered((name, value) for name, value in read if not isinstance(value, Missing) and value)
    return {name: tuple(sorted({*values})) for name, values in sorted(found.items())}


def gpu_models(snapshot: Snapshot) -> Mapping[str, int]:
    """How many GPUs of each model NVML lists; a GPU without a name is left out."""
    names = [gpu.name for gpu in snapshot.listed_gpus if not isinstance(gpu.name, Missing)]
    return {name: names.count(name) for name in sorted(set(names))}


def _read(snapshot: Snapshot) -> Iterator[tuple[str, str | Missing]]:
    nvml, host, hcas = snapshot.gpu, snapshot.known_host, snapshot.infiniband
    if isinstance(nvml, Nvml):
        yield "driver", nvml.driver_version
        if not isinstance(nvml.cuda_version, Missing):
            yield "cuda", cuda_version(nvml.cuda_version)
        yield from (("vbios", gpu.vbios) for gpu in nvml.gpus)
    yield from (("inforom", board.inforom_image) for board in rows(snapshot.gpu_board))
    if not isinstance(modules := snapshot.modules, Missing) and not isinstance(modules.driver, Missing):
        yield "kernel driver", modules.driver.flavour
    if not isinstance(host.cpu, Missing):
        yield "cpu", host.cpu.model
    sizes = [row.size_mb for row in rows(snapshot.edac)]
    if sizes and not any(isinstance(size, Missing) for size in sizes):
        yield "memory", f"{sum(size for size in sizes if not isinstance(size, Missing))} MiB"
    yield "kernel", host.kernel_release
    yield "bios", host.dmi.bios_version
    if not isinstance(host.os_release, Missing):
        yield "os", host.os_release.get("PRETTY_NAME", "")
    for hca in rows(hcas):
        if hca.is_vf is False and not isinstance(hca.board_id, Missing):
            yield f"firmware {hca.board_id}", hca.fw_ver


def _settings(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Sizes of BARs are those of the devices there are, and interfaces without a device come and go."""
    for _, record in records(snapshot):
        if isinstance(record, Bar | PciBars) or (isinstance(record, NetInterface) and isinstance(record.bdf, Missing)):
            continue
        kind = type(record).__name__
        prefix = "GPU " if kind.startswith("Gpu") else "PCIe " if isinstance(record, ConfigSpace) else ""
        if isinstance(record, IbPort) and isinstance(record.link_layer, str):
            yield "link layer", record.link_layer
        yield from ((prefix + label(of), _words(of, value)) for _, of, value in leaves(record, _is_setting)
                    if of[-1].nature == "setting")  # fmt: skip


def _is_setting(row: Fact) -> bool:
    return is_inside(row) or (row.nature == "setting" and "differs" not in row.more)


def _words(of: Rows, value: Value) -> str:
    """Of lists and lines of parameters those that no machine has for itself: paths, addresses and ids are left out."""
    if not isinstance(value, str | tuple):
        return text(of, value)
    words = value.split() if isinstance(value, str) else map(str, value)
    shared = " ".join(word for word in words if not _OWN.intersection(word) and "UUID=" not in word)
    return shared[:_LONGEST] or text(of, "")


_OWN, _LONGEST = frozenset("/:@"), 2048


def nvlink_domains(snapshot: Snapshot) -> tuple[str, ...]:
    """``CLUSTER_UUID.CLIQUE`` of the GPUs that are registered with a fabric manager, distinct and in order.

    A cluster UUID of zeros is a domain that ends at the machine (DGX A100, HGX H100); those are left out.
    https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/overview.html
    """
    modes = rows(snapshot.gpu_modes)
    return tuple(sorted({domain for mode in modes if (domain := _domain(mode))}))


def nvlinks(snapshot: Snapshot) -> Mapping[str, Mapping[str, Json]]:
    """Of GPUs in such a domain: how many NVLinks each has, and the positions of those that are down, by GPU."""
    found: dict[str, Mapping[str, Json]] = {}
    for gpu in snapshot.listed_gpus if nvlink_domains(snapshot) else ():
        states = [row for row in rows(snapshot.nvlink) if row.bdf == gpu.bdf and isinstance(row.up, bool)]
        if states and isinstance(gpu.index, int):
            found[f"GPU{gpu.index}"] = {"wired": len(states), "down": [row.link for row in states if not row.up]}
    return found


def _domain(modes: GpuModes) -> str:
    fabric = modes.fabric
    return f"{fabric.domain}.{fabric.clique_id}" if isinstance(fabric, Fabric) and fabric.domain else ""


def parts(snapshot: Snapshot, settings: Settings) -> tuple[Part, ...]:
    """GPUs, HCAs, DIMMs and the machine, with a serial number or GUID; GPUs with what wears out, and its limit."""
    return (*_machine(snapshot.known_host.dmi), *_gpus(snapshot, settings), *_hcas(snapshot), *_dimms(snapshot))


def _machine(firmware: Dmi) -> Iterator[Part]:
    if isinstance(firmware.product_serial, str):
        yield Part("machine", firmware.product_serial, "", text_of(firmware.product_name))


def _gpus(snapshot: Snapshot, settings: Settings) -> Iterator[Part]:
    gauges: dict[str, dict[str, tuple[float, ...]]] = {}
    for ecc in rows(snapshot.gpu_ecc):
        pages = [each for each in (ecc.retired_single_bit, ecc.retired_double_bit) if not isinstance(each, Missing)]
        own = gauges.setdefault(ecc.bdf, {})
        if isinstance(ecc.aggregate_corrected.total, int):
            own["corrected errors"] = ecc.aggregate_corrected.total, 1e6 * settings.limit("ecc.corrected")
        if isinstance(ecc.remapped_uncorrected, int):
            own["remapped rows"] = ecc.remapped_uncorrected, settings.limit("ecc.remapped-rows")
        if pages:
            own["retired pages"] = sum(map(len, pages)), settings.limit("ecc.retired-pages-fail")
    draw = {power.bdf: power.usage_mw / 1000 for power in rows(snapshot.gpu_power) if isinstance(power.usage_mw, int)}
    for thermal in rows(snapshot.gpu_thermal):
        for name, now, limit in (("temperature", thermal.gpu_c, thermal.slowdown_c),
                                 ("temperature margin", thermal.margin_c, thermal.slowdown_tlimit_c)):  # fmt: skip
            if isinstance(now, int) and isinstance(limit, int) and thermal.bdf in draw:
                gauges.setdefault(thermal.bdf, {})[name] = now, limit, draw[thermal.bdf]
    for gpu in snapshot.listed_gpus:
        serial = gpu.uuid if isinstance(gpu.serial, Missing) else gpu.serial
        if isinstance(serial, str):
            yield Part("gpu", serial, gpu.bdf, text_of(gpu.name), gauges.get(gpu.bdf, {}))


def _hcas(snapshot: Snapshot) -> Iterator[Part]:
    for hca in rows(snapshot.infiniband):
        guid = hca.node_guid if isinstance(hca.sys_image_guid, Missing) else hca.sys_image_guid
        if hca.is_vf is False and isinstance(hca.bdf, str) and isinstance(guid, str) and guid.strip("0:"):
            yield Part("hca", guid, hca.bdf, text_of(hca.board_id))


def _dimms(snapshot: Snapshot) -> Iterator[Part]:
    for dimm in rows(snapshot.dimms):
        if isinstance(dimm.serial, str):
            words = [name for name in (dimm.maker, dimm.model) if isinstance(name, str)]
            yield Part("dimm", dimm.serial, dimm.slot, " ".join(words))
