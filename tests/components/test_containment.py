"""What is part of what, on recorded machines: from a part up to the host, the nearest first."""

from __future__ import annotations

from functools import cache

import pytest
from measured_box import of_box
from sample import BOXES
from switches import switch_above

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import HOST, Component, host_part
from dgxcheck.components.containment import board, containers
from dgxcheck.components.locate import device_part, links_above, nvlinks_between, peer_path
from dgxcheck.profiles.library import names
from dgxcheck.source.recording.load import open_source


@cache
def recorded(name: str) -> Box:
    return of_box(open_source(name), name if name in names() else "none")


def kinds(box: Box, component: Component) -> list[str]:
    return ["/".join(filter(None, key)) for key in containers(box, component)]


def test_a_part_of_a_gpu_is_in_the_gpu_its_switch_root_port_socket_and_host() -> None:
    box = recorded("dgx-1-v100")
    gpu = box.topology.gpus[2]
    switch = switch_above(box, gpu)
    assert switch is not None
    assert kinds(box, device_part(box, gpu, "memory")) == ["gpu/0000:0a:00.0", *kinds(box, device_part(box, gpu))]
    above = kinds(box, device_part(box, gpu))
    assert above.index(f"switch/{switch.bdf}") < above.index("host-bridge/pci0000:00") < above.index("socket/0")
    assert above[-1] == "host/host"


def test_the_link_directly_above_a_device_is_part_of_it_and_no_container() -> None:
    box = recorded("dgx-1-v100")
    for device in box.topology.devices:
        own, *further = links_above(box, device)
        whole = device_part(box, device)
        assert whole.key in {*containers(box, own)}
        assert own.key not in {*containers(box, whole)}
        assert all(link.key in {*containers(box, whole)} for link in further)


def test_both_gpus_of_a_k80_are_on_one_board() -> None:
    box = recorded("k80-x8")
    pairs = {tuple(gpu.name for gpu in board(box, one)) for one in box.topology.gpus}
    assert pairs == {("GPU0", "GPU1"), ("GPU2", "GPU3"), ("GPU4", "GPU5"), ("GPU6", "GPU7")}
    one, other = (kinds(box, device_part(box, gpu)) for gpu in box.topology.gpus[:2])
    assert [key for key in one if key.startswith("board/")] == [key for key in other if key.startswith("board/")] != []


@pytest.mark.parametrize("name", [name for name in BOXES if name != "k80-x8"])
def test_a_gpu_of_its_own_board_is_on_none_that_is_named(name: str) -> None:
    box = recorded(name)
    assert all(board(box, gpu) == (gpu,) for gpu in box.topology.gpus)


def test_what_joins_two_gpus_is_part_of_both() -> None:
    box = recorded("dgx-1-v100")
    a, b = box.topology.gpus[:2]
    for joining in (nvlinks_between(box, a, b), peer_path(a, b)):
        assert {device_part(box, gpu).key for gpu in (a, b)} <= {*containers(box, joining)}


def test_a_port_is_part_of_its_hca_and_a_dimm_of_the_memory_of_the_host() -> None:
    box = recorded("dgx-1-v100")
    hca = next(device for device in box.topology.devices if device.kind == "nic")
    port = Component(kind="port", name=f"{hca.name}/1", bdf=hca.bdf)
    assert next(iter(containers(box, port))) == device_part(box, hca).key
    assert HOST.key in {*containers(box, host_part("memory", "mc2"))}


@pytest.mark.parametrize("name", BOXES)
def test_everything_is_in_the_host_and_nothing_in_itself(name: str) -> None:
    box = recorded(name)
    parts = [device_part(box, device, part) for device in box.topology.devices for part in ("", "memory")]
    for component in parts:
        above = [*containers(box, component)]
        assert above[-1] == HOST.key
        assert component.key not in above
        assert len(above) == len({*above})
