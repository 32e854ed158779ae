"""Every release's file is whole: each row of it can be used, whichever release it is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_core import SchemaValidator

from tpudeploy.catalog import engines, flags, releases, values, variables

FOLDER = Path(releases.__file__).parent
RELEASES = sorted(path.stem.rpartition("-")[2] for path in FOLDER.glob("*.json") if not path.stem.startswith("libtpu"))


def test_the_releases_with_rules_for_tpu_are_named_oldest_first() -> None:
    with_rules = [version for version in RELEASES if "rules" in releases.table(version)]
    assert list(releases.VERSIONS) == sorted(with_rules, key=engines.numbers)
    assert releases.VERSIONS[-1] == releases.NEWEST


@pytest.mark.parametrize("release", RELEASES)
def test_a_file_is_of_the_release_that_it_is_named_for(release: str) -> None:
    content = releases.find(release)
    assert content is not None
    assert content["release"] == release
    assert (FOLDER / f"{content['engine']}-{release}.json").exists()


@pytest.mark.parametrize("release", RELEASES)
def test_a_variable_without_a_rule_takes_any_value_and_the_others_refuse_nonsense(release: str) -> None:
    for name, rule in releases.table(release)["variables"].items():
        assert (variables.expected_instead(name, "no such value", release) is not None) == bool(rule)


@pytest.mark.parametrize("release", RELEASES)
def test_each_schema_is_one_that_pydantic_can_validate_with(release: str) -> None:
    for name in releases.table(release)["values"]:
        # A few are fields of the configuration without a flag: nothing asks for their rows.
        schema = values.schema(name, release)
        assert schema is not None
        SchemaValidator(values.complete_schema(schema))


@pytest.mark.parametrize("release", RELEASES)
def test_each_flag_is_found_by_each_of_its_names(release: str) -> None:
    for name in flags.names(release):
        flag = flags.find(name, release)
        assert flag is not None
        assert all(flags.find(alias, release) == flag for alias in flag.aliases)


@pytest.mark.parametrize("version", ["", "nightly", "9.9.9", "../0.32.0", "0.32.0.json"])
def test_an_unknown_release_is_read_as_the_newest_and_said_to_be_unknown(version: str) -> None:
    assert releases.find(version) is None
    assert releases.table(version) is releases.table(None)


def test_a_release_that_pairs_enable_with_disable_has_both_flags() -> None:
    assert flags.find("disable-prefix-caching") is None
    pair = flags.find("disable-prefix-caching", "0.33.0")
    assert pair is not None
    assert flags.express(pair, value=True) == ("--disable-prefix-caching",)


def test_what_a_release_dropped_is_accepted_for_the_one_that_had_it() -> None:
    flag = flags.find("kv-cache-dtype")
    other = flags.find("kv-cache-dtype", "0.33.0")
    assert flag is not None
    assert other is not None
    assert "fp8" in flag.choices
    assert other.choices == ()
