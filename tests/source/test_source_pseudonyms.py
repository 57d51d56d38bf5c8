"""Identities leave as pseudonyms: alike where they were alike, of the same form, and none of the originals survives."""

from __future__ import annotations

import re
import time

import pytest
from clock import SPARE
from hypothesis import given, settings
from hypothesis import strategies as st
from pseudonymized import GPU, GUID, IB, KEY, OTHER, UUID, lines_of, one, replaced

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import flatten

NET = "/sys/class/net"
MAC = "0c:42:a1:5e:77:09"


def form(text: str) -> str:
    """Digits and letters as classes, hexadecimal ones as one class, the rest as it stands."""
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "0", text))


@pytest.mark.parametrize(
    ("key", "text", "pattern"),
    [
        (f"nvml nvmlDeviceGetUUID {GPU}", f"GPU-{UUID}", r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        (f"nvml nvmlDeviceGetSerial {GPU}", "0324018045123", r"\d{13}"),
        (f"text {IB}/node_guid", f"{GUID}\n", r"[0-9a-f]{4}(:[0-9a-f]{4}){3}\n"),
        (f"text {IB}/sys_image_guid", f"{GUID}\n", r"[0-9a-f]{4}(:[0-9a-f]{4}){3}\n"),
        (f"text {NET}/eth0/address", f"{MAC}\n", r"[0-9a-f]{2}(:[0-9a-f]{2}){5}\n"),
        (f"text {NET}/eth0/address", "52:54:00:12:34:56\n", r"[0-9a-f]{2}(:[0-9a-f]{2}){5}\n"),
        ("text /sys/class/dmi/id/product_serial", "QTFCOU8070019\n", r"[A-Z]{6}\d{7}\n"),
        ("text /sys/class/dmi/id/product_serial", "ABCDEFGHIJKL\n", r"[A-Z]{12}\n"),
        ("text /proc/sys/kernel/random/boot_id", f"{UUID}\n", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n"),
        ("text /proc/sys/kernel/hostname", "dgx-17.example.org\n", r"host-[0-9a-f]{8}\n"),
        ("nvml nvmlSystemGetProcessName 4711", "/home/alice/train", r"process-[0-9a-f]{8}"),
        ("text /etc/dgx-release", 'DGX_NAME="DGX Server"\nDGX_SERIAL_NUMBER="QTFCOU8070019"\n',
         r'DGX_NAME="DGX Server"\nDGX_SERIAL_NUMBER="[A-Z]{6}\d{7}"\n'),
        ("kmsg 1", f"1.5;node {UUID} 10.17.0.23 0x5000c500a1b2c3d4 eth0:0c:42:a1:5e:77:09\n",
         r"1.5;node [0-9a-f-]{36} \d\d\.\d\d\.\d\.\d\d 0x[0-9a-f]{16} eth0(:[0-9a-f]{2}){6}\n"),
        (f"text {IB}/node_desc", f"rack7 {UUID} 10.17.0.23 mlx5_0 HCA-3 MT4123 ConnectX6\n",
         r"hidden [0-9a-f-]{36} \d\d\.\d\d\.\d\.\d\d mlx5_0 HCA-3 MT4123 ConnectX6\n"),
        ("kmsg 1", "1.5;[2001:db8:17::23]\n", r"1.5;\[[0-9a-f]{4}:[0-9a-f]{3}:[0-9a-f]{2}::[0-9a-f]{2}\]\n"),
        ("text /proc/cmdline", f"console=/{UUID}/x {UUID}\n", r"console=/[0-9a-f-]{36}/x [0-9a-f-]{36}\n"),
        (f"text {NET}/ib0/address", f"80:00:00:48:fe:80:00:00:00:00:00:00:{GUID[:2]}:{GUID[2:4]}:a1:03:00:5e:77:09\n",
         r"80:00:00:48:fe:80:00:00:00:00:00:00(:[0-9a-f]{2}){8}\n"),
    ],
)  # fmt: skip
def test_an_identity_keeps_its_form(key: str, text: str, pattern: str) -> None:
    found = one(key, text)
    assert re.fullmatch(pattern, found)
    assert found != text
    assert found == one(key, text)
    assert found != one(key, text, b"another key")


def test_of_the_nodes_of_imex_their_number_is_kept() -> None:
    text = "10.0.7.11\n# 10.0.7.12 is out\n\n  fd00::7:13 # rack7\ntray14.example.com\n"
    assert one("text /etc/nvidia-imex/nodes_config.cfg", text) == "node\nnode\nnode\n"


def test_struct_members_are_replaced() -> None:
    key = f"nvml nvmlDeviceGetGpuFabricInfo {GPU}"
    found = replaced({key: {"state": 3, "clusterUuid": UUID, "cliqueId": 0}})[key]
    assert isinstance(found, dict)
    assert {name: found[name] for name in ("state", "cliqueId")} == {"state": 3, "cliqueId": 0}
    assert form(str(found["clusterUuid"])).replace("a", "0") == form(UUID).replace("a", "0")
    assert found["clusterUuid"] != UUID


def test_equal_identities_map_alike_wherever_they_occur() -> None:
    octets = GUID.replace(":", "")
    ipoib = ":".join(octets[at : at + 2] for at in range(0, 16, 2))
    facts = replaced(
        {
            f"text {IB}/node_guid": f"{GUID}\n",
            f"text {IB}/sys_image_guid": f"{GUID}\n",
            f"text {IB}/node_desc": f"dgx-17 {GUID} 0x{octets}\n",
            f"text {NET}/ib0/address": f"80:00:00:48:fe:80:00:00:00:00:00:00:{ipoib}\n",
            f"text {NET}/enx{MAC.replace(':', '')}/address": f"{MAC}\n",
            f"text {NET}/eno1/address": f"{MAC.upper()}\n",
            "text /proc/cmdline": f"console=01-{MAC.replace(':', '-')}/dgx-17/{UUID} {UUID}\n",
            f"nvml nvmlDeviceGetUUID {GPU}": f"GPU-{UUID}",
            "text /proc/sys/kernel/hostname": "dgx-17.example.org\n",
            "text /proc/version": "Linux version 5.4.0 (root@dgx-17) (gcc 9.4.0)\n",
            "text /sys/class/dmi/id/product_serial": "0123456789012345\n",
            "text /etc/dgx-release": "DGX_SERIAL_NUMBER=0123456789012345\nOTHER=1\n",
        }
    )
    guid = str(facts[f"text {IB}/node_guid"]).strip()
    host = str(facts["text /proc/sys/kernel/hostname"]).strip()
    assert facts[f"text {IB}/sys_image_guid"] == f"{guid}\n"
    assert facts[f"text {IB}/node_desc"] == f"{host} {guid} 0x{guid.replace(':', '')}\n"
    assert str(facts[f"text {NET}/ib0/address"]).strip()[36:].replace(":", "") == guid.replace(":", "")
    mac = str(facts[f"text {NET}/eno1/address"]).strip().lower()
    assert facts[f"text {NET}/enx{mac.replace(':', '')}/address"] == f"{mac}\n"
    uuid = str(facts[f"nvml nvmlDeviceGetUUID {GPU}"])[4:]
    assert facts["text /proc/cmdline"] == f"console=01-{mac.replace(':', '-')}/{host}/{uuid} {uuid}\n"
    assert facts["text /proc/version"] == "Linux version 5.4.0 (hidden) (gcc 9.4.0)\n"
    serial = str(facts["text /sys/class/dmi/id/product_serial"]).strip()
    assert facts["text /etc/dgx-release"] == f"DGX_SERIAL_NUMBER={serial}\nOTHER=1\n"


def test_a_name_made_of_a_mac_is_replaced_in_names_keys_and_links() -> None:
    name = f"enx{MAC.replace(':', '')}"
    lines = lines_of(
        {
            f"names {NET}": ["enp1s0", name, "lo"],
            f"text {NET}/{name}/speed": "1000\n",
            f"link {NET}/{name}/device": "../../../1-1:1.0",
            f"text {NET}/{name}.100/mtu": "1500\n",
            f"link {NET}/{name}/master": f"../{name}.100",
            f"text {NET}/{name}/carrier": {"missing": "denied", "detail": f"{NET}/{name}/carrier leads out"},
        }
    )
    now, later = anonymized(lines, [(60, lines_of({f"text {NET}/{name}/speed": "10\n"}))], KEY)
    facts = flatten(now)
    names = facts[f"names {NET}"]
    assert isinstance(names, list)
    assert sorted(map(str, names)) == names
    new = next(str(each) for each in names if str(each).startswith("enx"))
    assert re.fullmatch("enx[0-9a-f]{12}", new)
    assert facts[f"text {NET}/{new}/speed"] == "1000\n"
    assert facts[f"link {NET}/{new}/device"] == "../../../1-1:1.0"
    assert facts[f"text {NET}/{new}.100/mtu"] == "1500\n"
    assert facts[f"link {NET}/{new}/master"] == f"../{new}.100"
    assert flatten(later[0][1]) == {f"text {NET}/{new}/speed": "10\n"}
    assert MAC.replace(":", "") not in repr((now, later))


@pytest.mark.parametrize(
    ("key", "fact"),
    [
        (f"text {NET}/lo/address", "00:00:00:00:00:00\n"),
        (f"text {IB}/node_guid", "0000:0000:0000:0000\n"),
        (f"nvml nvmlDeviceGetSerial {GPU}", "0"),
        (f"nvml nvmlDeviceGetUUID {GPU}", {"missing": "unsupported", "detail": "NVML 3: Not Supported"}),
        (f"nvml nvmlDeviceGetUUID {GPU}", None),
        (f"nvml nvmlDeviceGetName {GPU}", "Tesla V100-SXM2-16GB"),
        (f"nvml nvmlDeviceGetVbiosVersion {GPU}", "88.00.18.00.01"),
        (f"link /sys/bus/pci/devices/{GPU}", "../../../devices/pci0000:00/0000:00:02.0/0000:06:00.0"),
        (f"link /sys/bus/pci/devices/{GPU}/driver", "../../../../bus/pci/drivers/nvidia"),
        (f"text {NET}/eth0/speed", "100000\n"),
        ("text /proc/version", "Linux version 5.4.0-162-generic (buildd@lcy02) (gcc version 9.4.0)\n"),
        ("text /proc/cmdline", "vfio-pci.ids=10de:1db1 iommu=pt pci=noaer,resource=00:1f.0 nvidia_drm.modeset=1\n"),
        ("text /etc/os-release", 'NAME="Ubuntu"\nVERSION_ID="20.04"\n'),
        (f"text /sys/bus/pci/devices/{GPU}/resource", "0x00000000f9000000 0x00000000f9ffffff 0x0000000000040200\n"),
        ("text /sys/class/dmi/id/product_name", "DGX-1\n"),
    ],
)
def test_what_is_no_identity_stays(key: str, fact: Json) -> None:
    assert replaced({key: fact}) == {key: fact}


def test_a_name_made_of_a_guid_is_replaced_as_the_guid_is() -> None:
    name = f"rocex{GUID.replace(':', '')}"
    above = "../../devices/pci0000:00/0000:05:00.0/infiniband"
    facts = replaced(
        {
            "names /sys/class/infiniband": ["mlx5_1", name],
            f"link /sys/class/infiniband/{name}": f"{above}/{name}",
            f"text /sys/class/infiniband/{name}/node_guid": f"{GUID}\n",
            f"text /sys/class/infiniband/{name}/ports/1/rate": {"missing": "lost", "detail": f"{name} is gone"},
            f"names /sys/class/infiniband/{name}/ports": ["1"],
            "text /sys/class/infiniband/mlx5_1/node_desc": f"HCA-1 {name}\n",
        }
    )
    assert GUID.replace(":", "") not in repr(facts)
    guid = str(next(fact for key, fact in facts.items() if key.endswith("node_guid"))).strip()
    new = f"rocex{guid.replace(':', '')}"
    assert facts == {
        "names /sys/class/infiniband": ["mlx5_1", new],
        f"link /sys/class/infiniband/{new}": f"{above}/{new}",
        f"text /sys/class/infiniband/{new}/node_guid": f"{guid}\n",
        f"text /sys/class/infiniband/{new}/ports/1/rate": {"missing": "lost", "detail": f"{new} is gone"},
        f"names /sys/class/infiniband/{new}/ports": ["1"],
        "text /sys/class/infiniband/mlx5_1/node_desc": f"HCA-1 {new}\n",
    }


@pytest.mark.parametrize("kind", ["ib", "iw", "opa", "rdma", "roce"])
def test_names_of_every_kind_that_rdma_core_makes(kind: str) -> None:
    names = [f"{kind}xb8599f0300d1e2f4", f"{kind}p5s0", f"{kind}o3", f"{kind}xb8599f0300d1e2", "mlx5_bond_0"]
    found = replaced({"names /sys/class/infiniband": [*names]})["names /sys/class/infiniband"]
    assert isinstance(found, list)
    assert {*names} - {*map(str, found)} == {names[0], names[3]}  # one of 14 digits is none that rdma-core makes
    assert len(found) == len(names)


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("BOOT_IMAGE=/boot/vmlinuz-5.4 root=/dev/mapper/alice-root ro quiet splash\n",
         "BOOT_IMAGE=/boot/vmlinuz-5.4 root=hidden ro quiet splash\n"),
        ("ip=10.17.0.23::10.17.0.1 nfsroot=filer:/alice BOOTIF=01-0c-42 rd.iscsi.password=x console=ttyS0,115200n8\n",
         "ip=hidden nfsroot=hidden BOOTIF=hidden rd.iscsi.password=hidden console=ttyS0,115200n8\n"),
        ("default_hugepagesz=1G hugepagesz=1G hugepages=16 isolcpus=1-3 nohz_full=1-3 crashkernel=512M-:192M",
         "default_hugepagesz=1G hugepagesz=1G hugepages=16 isolcpus=1-3 nohz_full=1-3 crashkernel=512M-:192M"),
        ("iommu=pt amd_iommu=on pcie_aspm=off pcie-ports=native processor.max_cstate=1 intel_idle.max_cstate=0",
         "iommu=pt amd_iommu=on pcie_aspm=off pcie-ports=native processor.max_cstate=1 intel_idle.max_cstate=0"),
        ("modprobe.blacklist=nouveau rd.driver.blacklist=x nouveau.modeset=0 cgroup_enable=memory nvidia-drm.x=1",
         "modprobe.blacklist=nouveau rd.driver.blacklist=x nouveau.modeset=0 cgroup_enable=memory nvidia-drm.x=1"),
        ('dyndbg="file alice.c +p; x" nvidia.NVreg_RegistryDwords="a=1; b=2" "owner=alice b" quiet',
         'dyndbg=hidden nvidia.NVreg_RegistryDwords="a=1; b=2" owner=hidden quiet'),
        ('"nvidia alice=1" nvidia.x="open alice=', 'hidden nvidia.x="open alice='),
        ("iommux=1 xiommu=1 pci.x=1 rox=1 =1 a==b",
         "iommux=hidden xiommu=hidden pci.x=hidden rox=hidden =hidden a=hidden"),
        ("ro --x iommu=pt -- --addr 10.17.0.23 iommu=pt -k\n", "ro --x iommu=pt -- hidden hidden hidden hidden\n"),
        ("  quiet \t mitigations=off  \n", "  quiet \t mitigations=off  \n"),
    ],
)  # fmt: skip
def test_of_the_kernel_command_line_only_harmless_values_stay(line: str, due: str) -> None:
    assert one("text /proc/cmdline", line) == due


@given(st.text('ab =".-\n\t', max_size=60))
def test_of_any_command_line_nothing_is_left_to_hide(line: str) -> None:
    found = one("text /proc/cmdline", line)
    assert one("text /proc/cmdline", found) == found


def test_a_long_command_line_takes_no_time() -> None:
    started = time.monotonic()
    for piece in ('"', "a=", '"a" ', 'a="b c" ', "\\"):
        one("text /proc/cmdline", piece * (200_000 // len(piece)))
    assert time.monotonic() - started < 5 + SPARE


@pytest.mark.parametrize("host", ["nvidia", "linux", "dgx", "pci0000", "ubuntu", ".", "", "1", "a.b", "(x)+["])
def test_a_host_named_like_a_thing_changes_no_driver_and_no_product(host: str) -> None:
    facts: dict[str, Json] = {
        "link /sys/bus/pci/devices/0000:06:00.0/driver": "../../../../bus/pci/drivers/nvidia",
        f"link /sys/bus/pci/devices/{GPU}": "../../../devices/pci0000:00/0000:00:02.0/0000:06:00.0",
        "text /proc/version": "Linux version 5.4.0 (buildd@lcy02)\n",
        f"nvml nvmlDeviceGetName {GPU}": "nvidia",
    }
    found = replaced(facts | {"text /proc/sys/kernel/hostname": f"{host}\n"})
    assert {key: found[key] for key in facts} == facts


@pytest.mark.parametrize("text", ["Ä" * 99, "²³ܫ" * 40, "\U0001d7d8" * 70, "İ" * 64, "", "\n", "GPU-", "0x", "ﬁ" * 33])
def test_odd_serials_raise_nothing(text: str) -> None:
    assert isinstance(one(f"nvml nvmlDeviceGetSerial {GPU}", text), str)
    assert isinstance(one("text /etc/dgx-release", f'DGX_SERIAL_NUMBER="{text}"\n'), str)


HEX = st.text("0123456789abcdef", min_size=16, max_size=16).filter(lambda text: len(set(text)) > 4)
OCTETS = HEX.map(lambda text: ":".join(text[at : at + 2] for at in range(0, 12, 2)))
GUIDS = HEX.map(lambda text: ":".join(text[at : at + 4] for at in range(0, 16, 4)))
UUIDS = st.uuids(version=4).map(str)
SERIALS = st.one_of(
    st.text("0123456789", min_size=13, max_size=13).filter(lambda text: len(set(text)) > 3),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=12, max_size=20).filter(lambda text: len(set(text)) > 4),
)
HOSTS = st.from_regex(r"[a-z]{4}[a-z0-9-]{3,9}[0-9]{3}", fullmatch=True)
USERS = st.from_regex(r"[a-z]{9}", fullmatch=True)


@given(OCTETS, GUIDS, UUIDS, UUIDS, SERIALS, SERIALS, HOSTS, USERS)
@settings(max_examples=60)
def test_no_identity_survives_anywhere_in_the_file(
    mac: str, guid: str, uuid: str, gpu: str, serial: str, board: str, host: str, user: str
) -> None:
    name = f"enx{mac.replace(':', '')}"
    boot = f"root=UUID={uuid} BOOTIF=01-{mac.replace(':', '-')} host={host} id={uuid.replace('-', '')}\n"
    facts: dict[str, Json] = {
        f"names {NET}": [name, "lo"],
        f"text {NET}/{name}/address": f"{mac}\n",
        f"link {NET}/{name}/device": f"../../../{name}",
        f"text {IB}/node_guid": f"{guid}\n",
        f"text {IB}/node_desc": f"{host} mlx5_0 {guid} {mac}\n",
        "text /proc/sys/kernel/hostname": f"{host}.site.example\n",
        "text /proc/sys/kernel/random/boot_id": f"{uuid}\n",
        "text /proc/cmdline": boot,
        "text /proc/version": f"Linux version 6.1 (root@{host}.site.example) gcc\n",
        "text /sys/class/dmi/id/product_serial": f"{board}\n",
        "text /etc/dgx-release": f'DGX_SERIAL_NUMBER="{board}"\n',
        f"nvml nvmlDeviceGetUUID {GPU}": f"GPU-{gpu}",
        f"nvml nvmlDeviceGetSerial {GPU}": serial,
        f"nvml nvmlDeviceGetSerial {OTHER}": board,
        "nvml nvmlSystemGetProcessName 17": f"/home/{user}/bin/train",
        f"nvml nvmlDeviceGetGpuFabricInfo {GPU}": {"clusterUuid": uuid, "state": 3},
        f"text {NET}/{name}/speed": {"missing": "denied", "detail": f"{NET}/{name} leads out, to {mac}"},
    }
    lines = lines_of(facts)
    whole = repr(anonymized(lines, [(60.0, lines)], KEY)).lower()
    for identity in (mac, guid, uuid, gpu, serial, board, host, user):
        for spelling in (identity, re.sub("[:-]", "", identity), identity.replace(":", "-")):
            assert spelling.lower() not in whole
    bare = re.sub("[:-]", "", whole)
    assert not any(re.sub("[:-]", "", each).lower() in bare for each in (mac, guid, uuid, gpu))
