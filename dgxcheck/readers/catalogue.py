"""All readers, by subject, in the order in which they look at a text."""

from __future__ import annotations

from dgxcheck.readers.benchmarks import catalogue as benchmarks
from dgxcheck.readers.host import dmidecode, modules, numactl
from dgxcheck.readers.kernel_log import excerpt
from dgxcheck.readers.lspci import text as lspci
from dgxcheck.readers.model import Reader
from dgxcheck.readers.nccl import topology_xml
from dgxcheck.readers.network import ibstat, ibstatus, ibv_devinfo, mst, rdma_link
from dgxcheck.readers.nvidia_smi import catalogue as nvidia_smi

_MACHINE: tuple[Reader, ...] = (lspci.read, dmidecode.read, modules.read, numactl.read, excerpt.read)
_NETWORK: tuple[Reader, ...] = (ibstat.read, ibstatus.read, ibv_devinfo.read, rdma_link.read, mst.read)
READERS: tuple[Reader, ...] = (*benchmarks.READERS, *nvidia_smi.READERS, *_MACHINE, *_NETWORK, topology_xml.read)
