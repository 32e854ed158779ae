"""`frozen` makes what `@dataclass(frozen=True, slots=True, kw_only=True)` makes, and start-up relies on it being used."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.events import Requested
from tpudeploy.domain.frozen import frozen, replace

PRODUCT = Path(__file__).parents[2] / "tpudeploy"


@frozen
class Base:
    at: float


@frozen
class Ours(Base):
    """As it says."""

    name: str
    count: int = 1
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    secret: str = field(default="", repr=False)

    @property
    def twice(self) -> int:
        return 2 * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirBase:
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs(TheirBase):
    """As it says."""

    name: str
    count: int = 1
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    secret: str = field(default="", repr=False)

    @property
    def twice(self) -> int:
        return 2 * self.count


@frozen
class Spoken:
    line: int

    def __str__(self) -> str:
        return f"line {self.line}"

    def __repr__(self) -> str:
        return "spoken"


@pytest.fixture(params=[Ours, Theirs])
def kind(request: pytest.FixtureRequest) -> type[Any]:
    cls: type[Any] = request.param
    return cls


def test_it_is_shown_and_taken_apart_as_a_dataclass_is(kind: type[Any]) -> None:
    one = kind(at=1.5, name="a", labels={"team": "search"}, secret="s3")
    assert repr(one) == f"{kind.__name__}(at=1.5, name='a', count=1, labels={{'team': 'search'}})"
    assert asdict(one) == {"at": 1.5, "name": "a", "count": 1, "labels": {"team": "search"}, "secret": "s3"}
    assert [f.name for f in fields(one)] == ["at", "name", "count", "labels", "secret"]
    assert one.twice == 2
    assert kind.__doc__ == "As it says."
    match one:
        case kind(name="a", count=count):
            assert count == 1
        case _:
            pytest.fail("it matches its own fields")


def test_two_are_equal_if_what_is_compared_is(kind: type[Any]) -> None:
    one = kind(at=1.5, name="a")
    assert one == kind(at=1.5, name="a", labels={"not": "compared"})
    assert hash(one) == hash(kind(at=1.5, name="a", labels={"not": "compared"}))
    assert one != kind(at=1.5, name="a", count=2)
    assert one != (1.5, "a")
    assert replace(one, count=2) == kind(at=1.5, name="a", count=2)


def test_a_copy_has_what_is_changed_and_all_else(kind: type[Any]) -> None:
    one = kind(at=1.5, name="a", labels={"team": "search"}, secret="s3")
    other = replace(one, name="b", at=2)
    assert asdict(other) == {"at": 2, "name": "b", "count": 1, "labels": {"team": "search"}, "secret": "s3"}
    assert (one.name, type(other)) == ("a", kind)
    with pytest.raises(TypeError, match="nmae"):
        replace(one, nmae="b")


def test_classes_of_the_same_fields_are_not_equal() -> None:
    other: object = Theirs(at=1, name="a")
    assert Ours(at=1, name="a") != other


def test_a_default_is_made_anew_for_each(kind: type[Any]) -> None:
    one, other = kind(at=1, name="a"), kind(at=1, name="a")
    assert one.labels == {}
    assert one.labels is not other.labels


@pytest.mark.parametrize("arguments", [{"at": 1}, {"at": 1, "name": "a", "nmae": "b"}])
def test_what_is_missing_or_unknown_is_named(arguments: Mapping[str, Any], kind: type[Any]) -> None:
    with pytest.raises(TypeError, match="nmae" if "nmae" in arguments else "name"):
        kind(**arguments)


def test_names_are_needed(kind: type[Any]) -> None:
    with pytest.raises(TypeError, match="positional"):
        kind(1, "a")


def test_nothing_changes_after(kind: type[Any]) -> None:
    one = kind(at=1, name="a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        one.name = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del one.name
    assert not hasattr(one, "__dict__")


def test_it_is_copied_and_pickled(kind: type[Any]) -> None:
    one = kind(at=1, name="a", labels={"team": "search"})
    assert copy.deepcopy(one) == copy.copy(one) == one
    assert pickle.loads(pickle.dumps(one)).labels == {"team": "search"}


def test_a_method_of_its_own_is_kept() -> None:
    assert str(Spoken(line=3)) == "line 3"
    assert repr(Spoken(line=3)) == "spoken"


def test_no_class_has_methods_that_were_compiled_for_it() -> None:
    for method in ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"):
        assert vars(Deployment)[method] is vars(Requested)[method]


def test_the_product_makes_its_data_with_it() -> None:
    """The emulator is not waited for; its data may be anything."""
    files = [f for f in PRODUCT.rglob("*.py") if "emulator" not in f.parts and f.name != "frozen.py"]
    assert len(files) > 100
    assert [f.name for f in files if "@dataclass" in f.read_text(encoding="utf-8")] == []
