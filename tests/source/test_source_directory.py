"""A directory as a machine: what is in it is answered, what is outside is not, and nothing blocks."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgxcheck.facts.missing import BadInput, Gap, Missing
from dgxcheck.limits import BINARY_BYTES
from dgxcheck.source.directory import DirectorySource

MARKER = "this stands outside of the tree"
IB = "/sys/class/infiniband"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with one HCA, beside a directory that must not be read."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text(MARKER)
    tree = tmp_path / "tree"
    (tree / "sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0").mkdir(parents=True)
    (tree / "sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0/fw_ver").write_text("12.28.2006\n")
    (tree / "sys/class/infiniband").mkdir(parents=True)
    (tree / "sys/class/infiniband/mlx5_0").symlink_to("../../devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0")
    (tree / "sys/class/infiniband/mlx5_0/device").symlink_to("../../../0000:00:02.0")
    return tree


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """A read that blocks ends the test instead of the patience."""

    def late(*_: object) -> None:
        raise AssertionError("a read blocked")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def gap(answer: object) -> Gap:
    assert isinstance(answer, Missing), answer
    return answer.gap


def everything(source: DirectorySource, path: str) -> tuple[object, ...]:
    return source.text(path), source.data(path), source.names(path)


def test_what_links_inside_is_answered(root: Path) -> None:
    source = DirectorySource(str(root))
    assert source.names(IB) == ("mlx5_0",)
    assert source.text(f"{IB}/mlx5_0/fw_ver") == "12.28.2006\n"
    assert source.data(f"{IB}/mlx5_0/fw_ver") == b"12.28.2006\n"
    assert source.link(f"{IB}/mlx5_0/device") == "../../../0000:00:02.0"
    assert source.link(IB + "/mlx5_0").__class__ is str


@pytest.mark.parametrize("target", ["{outside}", "../../../../../outside", "../../../../outside/../outside/.", "/"])
def test_a_link_out_of_the_tree_is_denied_with_its_path_and_the_rest_is_answered(root: Path, target: str) -> None:
    (root / "sys/class/infiniband/mlx5_1").symlink_to(target.format(outside=root.parent / "outside"))
    source = DirectorySource(str(root))
    assert source.names(IB) == ("mlx5_0", "mlx5_1")
    asked = (*everything(source, f"{IB}/mlx5_1"), *everything(source, f"{IB}/mlx5_1/secret"))
    for answer in (*asked, source.link(f"{IB}/mlx5_1/secret")):
        assert gap(answer) is Gap.DENIED
        assert isinstance(answer, Missing)
        assert answer.where.startswith(f"{IB}/mlx5_1")
        assert f"{IB}/mlx5_1 leads out of the tree" in answer.detail
    assert source.text(f"{IB}/mlx5_0/fw_ver") == "12.28.2006\n"


def test_a_link_to_a_link_out_of_the_tree_is_denied(root: Path) -> None:
    (root / "sys/devices/door").symlink_to("../../../outside/secret")
    (root / "sys/devices/hall").symlink_to("door")
    (root / "sys/class/infiniband/mlx5_0/board_id").symlink_to("../../../../hall")
    assert gap(DirectorySource(str(root)).text(f"{IB}/mlx5_0/board_id")) is Gap.DENIED


@pytest.mark.parametrize("path", [f"{IB}/../../../../outside/secret", "/../outside/secret", "/sys/../../outside"])
def test_dots_in_a_question_do_not_leave_the_tree(root: Path, path: str) -> None:
    for answer in everything(DirectorySource(str(root)), path):
        assert gap(answer) is Gap.DENIED


def test_the_tree_may_itself_lie_behind_a_link(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    assert DirectorySource(str(root.parent / "alias")).text(f"{IB}/mlx5_0/fw_ver") == "12.28.2006\n"


def test_sys_that_leads_out_is_denied(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/sys").symlink_to("/sys")
    assert gap(DirectorySource(str(tmp_path / "tree")).names("/sys/class")) is Gap.DENIED


def test_a_loop_of_links_is_garbled(root: Path) -> None:
    (root / "sys/class/infiniband/a").symlink_to("b")
    (root / "sys/class/infiniband/b").symlink_to("a")
    (root / "sys/class/infiniband/self").symlink_to("self/self/self")
    source = DirectorySource(str(root))
    for name in ("a", "b", "self"):
        for answer in everything(source, f"{IB}/{name}/fw_ver"):
            where = f"{IB}/{name}/fw_ver"
            assert answer == Missing(Gap.GARBLED, where, "too many levels of symbolic links", errno.ELOOP)
    assert source.link(f"{IB}/a") == "b"


def test_names_of_ids_are_not_read_from_outside(root: Path) -> None:
    table = root.parent / "outside/pci.ids"
    table.write_text(f"10de  {MARKER}\n")
    (root / "usr/share/misc").mkdir(parents=True)
    (root / "usr/share/misc/pci.ids").symlink_to(table)
    assert DirectorySource(str(root)).name("pci", "10de") != MARKER


def test_names_of_ids_come_from_the_trees_own_table(root: Path) -> None:
    (root / "usr/share/misc").mkdir(parents=True)
    (root / "usr/share/misc/pci.ids").write_text("# ids\n10de  Its Own\n\t1db1  Board\n15b3  Other\n\t1db2  Wrong\n")
    source = DirectorySource(str(root))
    assert source.name("pci", "10de") == "Its Own"
    assert source.name("pci", "10de:1db1") == "Board"
    assert gap(source.name("pci", "10de:1db2")) is Gap.ABSENT
    assert gap(source.name("usb", "10de")) is Gap.ABSENT


@pytest.mark.parametrize(
    ("path", "due"),
    [
        (f"{IB}/mlx5_0/node_guid", Gap.ABSENT),
        (f"{IB}/mlx5_9/node_guid", Gap.ABSENT),
        ("/sys/class/net/eth0/speed", Gap.UNRECORDED),
        ("/sys/class/net", Gap.UNRECORDED),
        ("/sys/bus/pci/devices/0000:06:00.0/class", Gap.UNRECORDED),
        ("/sys/module/nvidia/version", Gap.UNRECORDED),
        ("/proc/cpuinfo", Gap.UNRECORDED),
        ("/etc/dgx-release", Gap.UNRECORDED),
    ],
)
def test_absent_is_only_what_the_tree_could_have_held(root: Path, path: str, due: Gap) -> None:
    source = DirectorySource(str(root))
    assert {gap(answer) for answer in (*everything(source, path), source.link(path))} == {due}


def test_an_empty_class_directory_makes_its_files_absent(root: Path) -> None:
    for directory in ("sys/class/net", "sys/module", "sys/bus/pci/devices", "proc", "etc"):
        (root / directory).mkdir(parents=True)
    source = DirectorySource(str(root))
    for path in ("/sys/class/net/eth0/speed", "/sys/module/nvidia/version", "/sys/bus/pci/devices/0000:06:00.0/class",
                 "/proc/cpuinfo", "/proc/driver/nvidia/version", "/etc/dgx-release"):  # fmt: skip
        assert gap(source.text(path)) is Gap.ABSENT


def test_nvml_and_device_nodes_are_unrecorded(root: Path) -> None:
    source = DirectorySource(str(root))
    assert gap(source.nvml("nvmlInit")) is Gap.UNRECORDED
    assert source.nvml("nvmlDeviceGetName", "0000:06:00.0", 3) == Missing(
        Gap.UNRECORDED, "nvmlDeviceGetName 0000:06:00.0 3", "a directory holds no NVML answers"
    )
    assert gap(source.opens("/dev/nvidia0")) is Gap.UNRECORDED
    assert gap(source.later(1)) is Gap.UNRECORDED


def test_what_is_no_regular_file_does_not_block(root: Path) -> None:
    os.mkfifo(root / "sys/class/infiniband/fifo")
    (root / "sys/class/infiniband/directory").mkdir()
    source = DirectorySource(str(root))
    for name in ("fifo", "directory"):
        where = f"{IB}/{name}"
        assert source.text(where) == Missing(Gap.GARBLED, where, "not a regular file", errno.EISDIR)
        assert source.data(where) == Missing(Gap.GARBLED, where, "not a regular file", errno.EISDIR)
    assert gap(source.names(f"{IB}/fifo")) is Gap.ABSENT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_node_is_not_opened(root: Path) -> None:
    try:
        os.mknod(root / "sys/class/infiniband/zero", 0o20666, os.makedev(1, 5))
    except OSError as error:
        pytest.skip(f"no device nodes here: {error}")
    expected = Missing(Gap.GARBLED, f"{IB}/zero", "not a regular file", errno.EISDIR)
    assert DirectorySource(str(root)).text(f"{IB}/zero") == expected


def test_a_file_beyond_the_limit_is_refused(root: Path) -> None:
    with open(root / "sys/class/infiniband/mlx5_0/huge", "wb") as file:
        file.truncate(9 << 20)
    with open(root / "sys/class/infiniband/mlx5_0/large", "wb") as file:
        file.truncate(BINARY_BYTES + 1)
    source = DirectorySource(str(root))
    huge, large = f"{IB}/mlx5_0/huge", f"{IB}/mlx5_0/large"
    assert source.text(huge) == Missing(Gap.GARBLED, huge, "larger than 64 KiB", errno.EFBIG)
    assert source.data(large) == Missing(Gap.GARBLED, large, "larger than 64 KiB", errno.EFBIG)
    assert source.text(f"{IB}/mlx5_0/fw_ver") == "12.28.2006\n"


def test_names_are_sorted_and_what_is_not_utf8_is_spelled_with_the_replacement(root: Path) -> None:
    directory = os.fsencode(root / "sys/class/infiniband")
    for name in (b"zz", b"mlx5_10", b"\xff\xfe", "ü".encode(), b"A"):
        os.mkdir(os.path.join(directory, name))
    names = DirectorySource(str(root)).names(IB)
    assert names == ("A", "mlx5_0", "mlx5_10", "zz", "ü", "��")
    (root / "sys/class/infiniband/mlx5_0/node_desc").write_bytes(b"node\xff\n")
    assert DirectorySource(str(root)).text(f"{IB}/mlx5_0/node_desc") == "node�\n"


@pytest.mark.parametrize("path", ["/sys/class/infiniband/a\0b", "/sys/\ud800", f"/sys/{'x' * 5000}", "/", "//", "sys"])
def test_a_path_that_no_file_can_have_is_a_gap(root: Path, path: str) -> None:
    source = DirectorySource(str(root))
    assert isinstance(source.text(path), Missing)
    assert isinstance(source.data(path), Missing)
    assert isinstance(source.link(path), Missing)


def test_unreadable_is_denied(root: Path) -> None:
    (root / "sys/class/infiniband/mlx5_0/fw_ver").chmod(0)
    if os.access(root / "sys/class/infiniband/mlx5_0/fw_ver", os.R_OK):
        pytest.skip("root reads everything")
    assert gap(DirectorySource(str(root)).text(f"{IB}/mlx5_0/fw_ver")) is Gap.DENIED


def test_a_directory_without_sys_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="contains no sys/ directory") as refused:
        DirectorySource(str(tmp_path))
    assert "\n" not in str(refused.value)
