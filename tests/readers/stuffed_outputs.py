"""Outputs of one machine as a support archive keeps them, with identities wherever a tool or a kernel puts them.

The names are those of sosreport's files; ``{...}`` are members of ``words``. Each output has identities of its own but
for the names of the machine, so that none is known from another output.
"""

from __future__ import annotations

from test_stuffed_box import Identities

ADDRESSES = ("203.0.113.77", "2001:db8:77::5")
TAG = "ASSET0451877"
_LOG = """\
[    0.000000] Linux version 6.1.0-18-generic ({user}@build.{domain}) (gcc 12) #1 SMP
[    0.000000] Command line: BOOT_IMAGE=/vmlinuz ip={ip}::{ip}:255.255.255.0:{host}:eno1 BOOTIF=01-{dashed}
[    1.100000] systemd[1]: Set hostname to <{host}.{domain}>.
[    2.200000] mlx5_core 0000:e1:00.0 {storage}: renamed from eth2
[    2.300000] mlx5_core 0000:e1:00.0 {storage}: Link up
[    2.400000] mlx5_core 0000:e1:00.0: Port module event: module 0, Cable plugged, {bare} serial {serial}
[    2.500000] nvidia 0000:bd:00.0: board S/N: {serial}, {colons}, GPU-{uuid}
[   10.000000] sudo[17]: {user} : TTY=pts/0 ; PWD=/home/{user} ; USER=root ; COMMAND=/usr/bin/{program}
[   11.000000] NVRM: API mismatch: the client '{program}' (pid 17) has the version 550.54.15, but
[   12.000000] NVRM: Xid (PCI:0000:bd:00): 31, pid=17, name={program}, Ch 00000010, intr 00000000 for {ip}
[   13.000000] INFO: task {program}:17 blocked for more than 120 seconds.
[   14.000000] NVRM: GPU 0000:bd:00.0: dump written to /home/{user}/core of {host}.{domain}, user={user}
[   15.000000] nvidia-modeset: display of {user}@{host} at {ip6}, interface {storage}, machine {machine}
"""
OUTPUTS = {
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.1 root=UUID={uuid} ro ip={ip}::{ip}:255.255.255.0:{host}:eno1"
    " BOOTIF=01-{dashed} console={bare} iommu=pt nvidia.owner={host} rd.luks.uuid={uuid} quiet\n",
    "proc/version": "Linux version 6.1.0-18-generic ({user}@build.{domain}) (gcc 12) #1 SMP\n",
    "proc/sys/kernel/hostname": "{host}.{domain}\n",
    "etc/os-release": 'NAME="Ubuntu"\nID=ubuntu\nHOME_URL="https://{host}.{domain}/"\n',
    "etc/dgx-release": 'DGX_NAME="DGX Server"\nDGX_SERIAL_NUMBER="{serial}"\n',
    "sos_commands/kernel/uname_-a": "Linux {host} 6.1.0-18-generic #1 SMP x86_64 GNU/Linux\n",
    "sos_commands/kernel/dmesg": _LOG,
    "var/log/messages": "".join(
        f"Nov 23 09:00:{second:02d} {{host}} {text}\n"
        for second, text in enumerate(
            (
                "sshd[99]: Accepted publickey for {user} from {ip} port 22 ssh2",
                "kernel: NVRM: Xid (PCI:0000:bd:00): 43, pid=18, name={program}, Ch 00000008",
                "kernel: mlx5_core 0000:e1:00.0 {storage}: Link down",
                "kernel: mlx5_core 0000:e1:00.0: mlx5_cmd_out_err:808: for {user} of {colons}",
                "systemd[1]: Started Session 3 of user {user}.",
            )
        )
    ),
    "sos_commands/hardware/dmidecode": "# dmidecode 3.3\n\nHandle 0x0000, DMI type 0, 26 bytes\nBIOS Information\n"
    "\tVendor: AMI\n\tVersion: {uuid}\n\tRelease Date: 01/01/2026\n\nHandle 0x0001, DMI type 1, 27 bytes\n"
    "System Information\n\tManufacturer: NVIDIA\n\tProduct Name: DGX\n\tVersion: {colons}\n"
    "\tSerial Number: {serial}\n\tUUID: {uuid}\n\tAsset Tag: {tag}\n",
    "sos_commands/infiniband/ibstat": "CA '{adapter}'\n\tCA type: MT4123\n\tNumber of ports: 1\n"
    "\tFirmware version: 20.43.1014\n\tHardware version: 0\n\tNode GUID: 0x{guid}\n\tSystem image GUID: 0x{guid}\n"
    "\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 200\n\t\tBase lid: 41\n\t\tLMC: 0\n"
    "\t\tSM lid: 1\n\t\tCapability mask: 0x2651e848\n\t\tPort GUID: 0x{guid}\n\t\tLink layer: InfiniBand\n",
    "sos_commands/infiniband/ibv_devinfo_-v": "hca_id:\t{adapter}\n\ttransport:\t\t\tInfiniBand (0)\n"
    "\tfw_ver:\t\t\t\t20.43.1014\n\tnode_guid:\t\t\t{groups}\n\tsys_image_guid:\t\t\t{groups}\n"
    "\tvendor_id:\t\t\t0x02c9\n\tboard_id:\t\t\tMT_{guid}\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
    "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tport_lid:\t\t41\n\t\t\tlink_layer:\t\tInfiniBand\n"
    "\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:{groups}\n",
    "sos_commands/infiniband/ibdev2netdev": "{adapter} port 1 ==> {storage} (Up)\n",
    "sos_commands/infiniband/rdma_link": "link {adapter}/1 state ACTIVE physical_state LINK_UP netdev {storage}\n",
    "sos_commands/infiniband/mst_status_-v": "DEVICE_TYPE MST PCI RDMA NET NUMA\n"
    "ConnectX6(rev:0) /dev/mst/mt4123_pciconf0 cc:00.0 {adapter} net-{storage} 1\n",
    "sos_commands/infiniband/mlxlink": "mlxlink -d {adapter} -m\n\nOperational Info\n----------------\n"
    "State                              : Active\nPhysical state                     : LinkUp\n"
    "Speed                              : IB-HDR\nWidth                              : 4x\n\nTroubleshooting Info\n"
    "--------------------\nStatus Opcode                      : 59\n"
    "Recommendation                     : module serial number {serial} of {host}.{domain}, {bare}, {colons}\n"
    "\nModule Info\n-----------\nVendor Serial Number               : {serial}\n",
    "sos_commands/nvidia/nvidia-smi_-L": "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-{uuid})\n",
    "sos_commands/nvidia/dcgmi_discovery_-l": "1 GPU found.\n+--------+----------------------------------------+\n"
    "| GPU ID | Device Information                     |\n+--------+----------------------------------------+\n"
    "| 0      | Name: NVIDIA A100-SXM4-40GB            |\n|        | PCI Bus ID: 00000000:BD:00.0           |\n"
    "|        | Device UUID: GPU-{uuid} |\n+--------+----------------------------------------+\n",
    "sos_commands/nvidia/dcgmi_health_-c": "Detected a WARNING in health system PCIe: 'GPU 0 of {host}.{domain}"
    " ({ip}), serial number {serial}, {uuid}, {colons}, mounted by {user}@{host} has replays'\n",
    "sos_commands/nvidia/fabricmanager": "[Nov 23 2026 09:00:00] [ERROR] [tid 17] failed to reach {host}.{domain}"
    " at {ip} ({ip6}), GPU-{uuid}, machine {machine}\n",
    "sos_commands/pci/lspci_-nnvvxxxx": "0000:bd:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20b0]\n"
    "\tSubsystem: NVIDIA Corporation Device [10de:134f]\n\tPhysical Slot: 3\n"
    "\tCapabilities: [148 v1] Device Serial Number {octets}\n\t\t[SN] Serial number: {serial}\n{config}\n"
    "0000:cc:00.0 Infiniband controller [0207]: Mellanox Technologies MT28908 [15b3:101b]\n"
    "\tCapabilities: [148 v1] Device Serial Number {octets}\n\tKernel driver in use: mlx5_core\n{config}\n",
}
PASTED = """\
[{user}@{host} ~]$ nvidia-smi --query-gpu=index,name,uuid,serial,pci.bus_id --format=csv
index, name, uuid, serial, pci.bus_id
0, NVIDIA A100-SXM4-40GB, GPU-{uuid}, {serial}, 00000000:BD:00.0
[{user}@{host} ~]$ ./all_reduce_perf -g 1
{host}:17:17 [0] NCCL INFO NET/IB : Using [0]{adapter}:1/IB [RO]; OOB {storage}:{ip}<0>
{host}:17:17 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId bd000 - Init START
{host}:17:17 [0] misc/socket.cc:49 NCCL WARN Connect to peer{host}.{domain}<{ip}> failed : Connection refused
{host}:17:17 [0] misc/socket.cc:52 NCCL WARN Connect to next{host}<48123> failed : No route to host
{host}:17:17 [0] transport/net.cc:9 NCCL WARN plugin of {user}@{host} at {ip6} said {uuid}
[{user}@{host} ~]$ dmesg | grep -i nvrm
[   12.000000] NVRM: Xid (PCI:0000:bd:00): 31, pid=17, name={program}, Ch 00000010, on {host} for {user}@{host}
"""


def words(some: Identities) -> dict[str, str]:
    """What stands for each name in braces."""

    def by(text: str, size: int, mark: str) -> str:
        return mark.join(text[at : at + size] for at in range(0, len(text), size))

    uuid = some.uuids[0]
    config = bytearray(4096)
    config[:4], config[0x34], config[0x40:0x42] = bytes.fromhex("de10b020"), 0x40, b"\x09\x00"
    config[0x42:0x4A] = bytes.fromhex(some.guid)
    config[0x100:0x104] = (0x148 << 20 | 1 << 16 | 0x000B).to_bytes(4, "little")  # vendor specific
    config[0x108:0x118] = bytes.fromhex(uuid)
    config[0x148:0x14C] = (1 << 16 | 0x0003).to_bytes(4, "little")  # Device Serial Number
    config[0x14C:0x154] = bytes.fromhex(some.guid)[::-1]
    rows = "".join(f"{at:02x}: {config[at : at + 16].hex(' ')}\n" for at in range(0, len(config), 16))
    return {
        "host": some.host, "domain": some.domain, "storage": some.storage, "adapter": some.adapter, "user": some.user,
        "program": some.program, "serial": some.serials[1], "guid": some.guid, "groups": by(some.guid, 4, ":"),
        "octets": by(some.guid, 2, "-"), "bare": some.mac, "colons": by(some.mac, 2, ":"),
        "dashed": by(some.mac, 2, "-"), "machine": some.uuids[1], "tag": TAG, "ip": ADDRESSES[0], "ip6": ADDRESSES[1],
        "uuid": f"{uuid[:8]}-{by(uuid[8:20], 4, '-')}-{uuid[20:]}", "config": rows,
    }  # fmt: skip


def outputs(some: Identities) -> tuple[dict[str, bytes], list[Identities]]:
    """By the path of the file in the archive, and all whose identities are in them."""
    files: dict[str, bytes] = {}
    everyone = [some]
    for number, (name, text) in enumerate(OUTPUTS.items()):
        own = Identities(some.seed * 1000 + number)
        own.host = some.host
        everyone.append(own)
        files[name] = text.format(**words(own)).encode()
    return files, everyone
