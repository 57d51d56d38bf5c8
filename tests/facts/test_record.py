"""Records: what they take, what they refuse, and when two are one."""

from __future__ import annotations

import pytest

from dgxcheck.facts import nature
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, fields, remembered, replace


class Port(Record):
    """Fields by keyword, one with a default."""

    number: int
    state: str = "ACTIVE"


class Place(Record, kw_only=False):
    """The same in order too."""

    bdf: str
    slot: int | None = None


def test_defaults_fill_what_is_not_given() -> None:
    assert Port(number=1) == Port(state="ACTIVE", number=1) != Port(number=1, state="DOWN")
    assert Place("0000:06:00.0") == Place(bdf="0000:06:00.0", slot=None) != Place("0000:06:00.0", 2)
    assert hash(Port(number=1)) == hash(Port(number=1, state="ACTIVE"))
    assert replace(Place("0000:06:00.0"), slot=3) == Place("0000:06:00.0", 3)


class Lane(Port):
    """The fields of a port, one with another default, and its own."""

    state: str = "DOWN"
    error: int = nature.counter("lane errors", default=0)


def test_a_record_of_a_record_has_the_fields_of_both() -> None:
    assert fields(Lane) == ("number", "state", "error")
    assert Lane(number=1) == replace(Lane(number=1, error=2), error=0) == Lane(number=1, state="DOWN", error=0)
    assert Lane(number=1) != Port(number=1, state="DOWN")
    assert Port(number=1).state == "ACTIVE"
    assert [*nature.rows_of(Lane)] == ["error"]
    with pytest.raises(TypeError, match="Lane needs 'number'"):
        Lane()  # type: ignore[call-arg]


class Hop(Record, many=True):
    """As Port, but hundreds are made."""

    number: int
    state: str = "ACTIVE"


class LongHop(Hop):
    """One field more, which is made as the others are."""

    metres: float = 1.5


class Pair(Record, kw_only=False, many=True):
    """The same in order too."""

    one: str
    other: str | None = None


def test_what_is_made_by_the_hundred_is_an_ordinary_record() -> None:
    assert Hop(number=1) == Hop(state="ACTIVE", number=1) != Hop(number=1, state="DOWN")
    assert LongHop(number=1) == replace(LongHop(number=1, metres=2), metres=1.5) != Hop(number=1)
    assert Pair("a", other="b") == Pair("a", "b") != Pair("a")
    with pytest.raises(AttributeError):
        Pair("a").one = "b"  # type: ignore[misc]


def test_records_of_two_kinds_are_never_equal() -> None:
    assert Place("1") != Missing(Gap.ABSENT, "1")
    assert Port(number=1) != 1


@pytest.mark.parametrize(
    ("made", "refused"),
    [
        (lambda: Port(), "Port needs 'number'"),  # type: ignore[call-arg]
        (lambda: Port(1), "Port takes 0 values in order"),  # type: ignore[call-arg]
        (lambda: Port(number=1, state="DOWN", rate=2), "Port has no rate"),  # type: ignore[call-arg]
        (lambda: Hop(), "missing 1 required keyword-only argument: 'number'"),  # type: ignore[call-arg]
        (lambda: Hop(number=1, rate=2), "unexpected keyword argument 'rate'"),  # type: ignore[call-arg]
        (lambda: Place("1", 2, 3), "Place takes 2 values in order"),  # type: ignore[call-arg]
    ],
)
def test_what_a_record_does_not_have_is_refused(made: object, refused: str) -> None:
    assert callable(made)
    with pytest.raises(TypeError, match=refused):
        made()


def test_nothing_is_changed_afterwards() -> None:
    port = Port(number=1)
    with pytest.raises(AttributeError):
        port.number = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del port.state
    assert port == Port(number=1)


def test_a_gap_is_a_value_as_every_record() -> None:
    """It has a class of its own, for speed."""
    gap = Missing(Gap.LOST, "/sys/x", "lost", 19)
    assert repr(gap) == "Missing(gap=<Gap.LOST: 'lost'>, where='/sys/x', detail='lost', code=19)"
    with pytest.raises(AttributeError):
        gap.code = 0
    assert Missing(Gap.LOST, "/sys/x") == Missing(Gap.LOST, "/sys/x", "", None) != Missing(Gap.LOST, "/sys/x", "lost")
    assert len({Missing(Gap.LOST, "/sys/x"), Missing(Gap.DENIED, "/sys/x"), Missing(Gap.LOST, "/sys/x")}) == 2


def test_the_last_used_results_are_remembered() -> None:
    asked: list[object] = []

    @remembered(2)
    def doubled(of: object, times: int = 2) -> int:
        """Of an object."""
        asked.append(of)
        return len(asked) * times

    port = Port(number=1)
    assert [doubled(each) for each in (port, id(port), port, "a", port)] == [2, 4, 2, 6, 2]
    assert asked == [port, id(port), "a"]
    assert doubled(Port(number=1)) == 8
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Of an object.")
    with pytest.raises(TypeError, match="times"):
        doubled(port, times=3)
    vars(doubled)["forget"]()
    assert doubled(port) == 10
