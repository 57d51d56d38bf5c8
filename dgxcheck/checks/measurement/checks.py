"""What is measured and judged; the modules that judge are imported where there are figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, called, part
from dgxcheck.checks.engine.finding import Judged
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.missing import Missing


def _figures(box: Box, name: str, or_else: bool = True) -> Judged:
    """A judge of this package, where something was measured; else what keeps the host from being judged, if wanted."""
    rows = box.snapshot.measurement
    if not isinstance(rows, Missing):
        yield from called(f"measurement.{name}")(box)
    elif or_else:
        yield HOST, unjudged(rows)


def _path(name: str) -> Callable[..., Any]:
    """Components on the path of a figure."""
    return called(f"measurement.paths.{name}")


def _host_bandwidth(box: Box) -> Judged:
    """Pinned copies from and to each GPU: warns below {measure.warn} and fails below {measure.fail} of the profile's
    figure; without one warns below {measure.derived} of what the PCIe path gives. Also warns where runs of one GPU
    differ by more than {measure.runs}, where one direction is slower than the other or one GPU slower than others of
    its model by more than {measure.directions}, below {measure.pinned}, and below {measure.far} of the figure of a
    machine with such GPUs. Copies that a narrow or slow PCIe link explains are skipped: the checks of the link report
    it. Copies both ways at once are not judged. A GPU on which no copy could be measured for lack of memory that no
    process holds is unknown, and fails if NVML says that memory is free.

    Source: the profile's pcie.host-to-device and pcie.device-to-host; cuMemcpyHtoDAsync, cuMemcpyDtoHAsync
    """
    return _figures(box, "host_copies.judge_host")


def _memory_bandwidth(box: Box) -> Judged:
    """Copies within each GPU's memory, read and write counted: warns below {measure.warn} and fails below
    {measure.fail} of the figure of its model; warns where the GPU is slower than the others of its model by more than
    {measure.symmetry}, and where runs differ by more than {measure.runs}. Copies of a GPU to itself, the diagonals of
    p2pBandwidthLatencyTest, warn below {measure.derived} of the median of at least two others of its model.

    Source: the board's device_copy; cuMemcpyDtoDAsync
    """
    return _figures(box, "host_copies.judge_memory")


def _memory_integrity(box: Box) -> Judged:
    """Fails where words of the patterns written into a GPU's memory read back wrong.

    Source: kernels that fill and check 1 GiB of the memory, with --long all free memory but 512 MiB
    """
    return _figures(box, "integrity.judge_memory")


def _p2p_integrity(box: Box) -> Judged:
    """Fails where data that one GPU sends into another's memory, by copy engine, by stores of a kernel or between two
    kernels that wait for each other, is not what the owner of that memory reads, and where the handshake of the two
    kernels times out. A pair with a GPU whose own memory is wrong is reported by measure.memory-integrity. Between GPUs
    joined by PCIe the message names an IOMMU that translates, or the ports whose ACS redirects.

    Source: patterns checked on the owner's side; cuMemcpyDtoDAsync with peer access on; NVIDIA/nccl issue 2335 on
    copies that report success and move nothing
    """
    return _figures(box, "integrity.judge_p2p")


def _p2p_bandwidth(box: Box) -> Judged:
    """Copies between two GPUs, each way, both ways at once, and with P2P off: warns below {measure.warn} and fails
    below {measure.fail} of the profile's figure for what joins them; without one warns below {measure.warn} of what
    their NVLinks give, below {measure.derived} of what the PCIe path gives. Also warns where P2P on is slower than
    P2P off, one direction slower than the other, or the pair slower than the median of pairs joined by the same
    links, by more than {measure.symmetry} (than the median of all pairs by more than {measure.unlike} where the
    links are unknown, {measure.directions} where three quarters of all are alike, or over NVLinks those between most of
    the GPUs), where copies through host memory
    between NUMA nodes are slower than the median within one by more than {measure.directions}, and where runs
    differ by more than {measure.runs}. Where all pairs are slower with P2P on there is one finding, of the host.
    Copies that a narrow PCIe link explains are skipped: the checks of the link report it. Pairs to which the driver
    refuses peer access are not judged with P2P on, nor pairs whose data does not arrive intact.

    Source: the profile's nvlink.p2p and pcie.p2p figures; cuMemcpyDtoDAsync and cuMemcpyPeerAsync
    """
    return _figures(box, "p2p_copies.judge_bandwidth")


def _p2p_latency(box: Box) -> Judged:
    """Warns where a small copy between two GPUs takes, with P2P on, more than {measure.p2p-latency} of the time that it
    takes with P2P off. Only where the driver offers access, and where the same tool measured both in the same way. Also
    warns where it takes twice the median of all pairs, of which three quarters are within {measure.directions} of it.
    The latency of a kernel's loads is shown and not judged.

    Source: cuMemcpyDtoDAsync of 16 bytes with peer access on, cuMemcpyPeerAsync with it off; p2pBandwidthLatencyTest on
    a DGX-1, on K80, RTX and GeForce boxes
    """
    return _figures(box, "p2p_copies.judge_latencies")


def _rdma_bandwidth(box: Box) -> Judged:
    """What perftest measured at an HCA: warns below {measure.warn} of the rate of its port, or below {measure.derived}
    of what its PCIe link carries where that is less; warns where it is slower than the median of ports with the same
    rate by more than {measure.symmetry}, and where runs differ by more than {measure.runs}. A figure that a narrow PCIe
    link explains is skipped: gdr.link reports the link. Of transfers from the memory of a GPU, which may be far from
    the HCA, only the runs are compared.

    Source: ib_write_bw, ib_read_bw, ib_send_bw; Azure's node checks expect 180 of 200 and 380 of 400 Gbit/s
    """
    return _figures(box, "rdma_ports.judge_hcas")


def _collectives(box: Box) -> Judged:
    """Bus bandwidth of NCCL's operations: warns below {measure.warn} and fails below {measure.fail} of the profile's
    figure for the operation and number of GPUs, warns below the floor that the profile gives for it, and below
    {measure.derived} of what the same run reached with smaller messages, and fails on wrong values. Copies around the
    rings of NVLinks: warns below {measure.rings} of what the links allow. Runs of NCCL with less than 32 MiB are not
    judged, of two GPUs without NVLink those with less than 10 MiB.

    Source: the profile's nvlink.all-reduce and the like; rings of the NVLink graph x 2 directions x rate of each
    """
    return _figures(box, "collectives.judge_collectives")


def _compute(box: Box) -> Judged:
    """Warns where the multiply-add throughput of a GPU is below the median of the GPUs of its model in this box by more
    than {measure.compute}, and says whether lower clocks explain it and what holds them down; without others of its
    model, below {measure.derived} of the peak of its model at its clock. Fails below {measure.far} of that peak, and
    where multiprocessors work out different results.

    Source: a kernel of fused multiply-adds, in which all blocks work out the same; nvmlDeviceGetClockInfo and the
    clocks' event reasons meanwhile
    """
    return _figures(box, "compute.judge_throughput")


def _burn_in(box: Box) -> Judged:
    """Judges a burn-in (--duration); there is no finding without one. Fails on wrong words, on uncorrected memory
    errors, where the load of a GPU hung or failed, where the burn-in stopped by itself because of a GPU, and where the
    hardware held clocks down in more than {measure.slowdown-fail} of the samples; warns above {measure.slowdown-warn},
    also for software thermal slowdown, where a bandwidth fell by more than {measure.drift} ({measure.runs} with the
    host, both ways as one) from the first fifth of the time to the last, and where the median SM clock is more than
    {measure.clock} below that of the other GPUs of its model. Unknown where it was interrupted.

    Source: dgxcheck's own load; NVML once a second
    """
    return _figures(box, "burn_in.judge_burn_in", or_else=False)


CHECKS = (
    Check("measure.host-bandwidth", _host_bandwidth, _path("gpu_or_driver"), crossed=_path("host_copy"),
        traffic="copies"),
    Check("measure.memory-bandwidth", _memory_bandwidth, _path("gpu_or_driver"), crossed=_path("memory_copy"),
        traffic="memory"),
    Check("measure.memory-integrity", _memory_integrity, part("memory")),
    Check("measure.p2p-integrity", _p2p_integrity, _path("pair_or_setting")),
    Check("measure.p2p-bandwidth", _p2p_bandwidth, _path("pair_or_driver"), crossed=_path("peer_copy"),
        traffic="copies"),
    Check("measure.p2p-latency", _p2p_latency, _path("between_pair"), crossed=_path("small_copy"), traffic="latency"),
    Check("measure.rdma-bandwidth", _rdma_bandwidth, called("measurement.rdma_ports.hca_or_port")),
    Check("measure.collective", _collectives, _path("nccl_or_nvlinks"), crossed=_path("collective"), traffic="copies"),
    Check("measure.compute", _compute, _path("loaded_gpu"), _path("shared_by_loaded_gpus")),
    Check("measure.burn-in", _burn_in, _path("loaded_gpu"), _path("shared_by_loaded_gpus")),
)  # fmt: skip
