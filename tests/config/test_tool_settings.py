"""Settings of the tool: flags over environment over tpudeploy.toml, and each remembers where it was made."""

from __future__ import annotations

import pytest

from tpudeploy.config.settings import Settings, settings, variable
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.patience import Patience

_FILE = b"""\
# how this team works
backend = "gs://bucket/prefix"
project = "from-file"

[patience]
grace = "2m"
poll_first = 2
"""


def test_without_any_setting_the_defaults_hold() -> None:
    assert settings({}, {}) == Settings()


def test_flags_win_over_the_environment_and_the_environment_over_the_file() -> None:
    read_settings = settings(
        {"backend": None, "patience.poll_most": "45s"},
        {"TPUDEPLOY_PROJECT": "from-environment", "TPUDEPLOY_PATIENCE_GRACE": "90", "TPUDEPLOY_BACKEND": ""},
        _FILE,
    )
    assert (read_settings.backend, read_settings.project) == ("gs://bucket/prefix", "from-environment")
    assert read_settings.patience == Patience(grace=90.0, poll_first=2.0, poll_most=45.0)
    assert read_settings.origins == {
        "backend": "tpudeploy.toml:2:1",
        "project": "TPUDEPLOY_PROJECT",
        "patience.grace": "TPUDEPLOY_PATIENCE_GRACE",
        "patience.poll_first": "tpudeploy.toml:7:1",
        "patience.poll_most": "--patience-poll-most",
    }


def test_a_flag_and_its_environment_twin_are_named_alike() -> None:
    assert variable("patience.poll_first") == "TPUDEPLOY_PATIENCE_POLL_FIRST"


@pytest.mark.parametrize(
    ("file", "place", "says"),
    [
        (b"backnd = 'x'\n", "tpudeploy.toml:1:1", 'did you mean "backend"?'),
        (b"\n[patience]\ngrac = 1\n", "tpudeploy.toml:3:1", 'did you mean "patience.grace"?'),
        (b"backend = 1\n", "tpudeploy.toml:1:1", "quote it"),
        (b"[patience]\ngrace = true\n", "tpudeploy.toml:2:1", "seconds"),
        (b"[patience]\ngrace = -1\n", "tpudeploy.toml:2:1", "seconds"),
        (b"[patience]\ngrace = inf\n", "tpudeploy.toml:2:1", "seconds"),
        (b"patience = 3\n", "tpudeploy.toml:1:1", ""),
    ],
)
def test_a_setting_that_is_wrong_is_said_with_its_line(file: bytes, place: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings({}, {}, file)
    (diagnostic,) = refused.value.diagnostics
    assert str(diagnostic.location) == place
    assert says in diagnostic.hint


@pytest.mark.parametrize("file", [b"a =", b"\xff", b"a = " + b"[" * 5000])
def test_a_file_that_is_no_toml_is_refused(file: bytes) -> None:
    with pytest.raises(ConfigError, match="is not TOML"):
        settings({}, {}, file)


def test_a_variable_that_is_no_time_is_named() -> None:
    with pytest.raises(ConfigError) as refused:
        settings({}, {"TPUDEPLOY_PATIENCE_GRACE": "soon"})
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.location is not None
    assert diagnostic.location.file == "TPUDEPLOY_PATIENCE_GRACE"
