"""What the set says of kinds, without any installed plugin."""

from __future__ import annotations

import pytest

from agentd.cli.plugins import as_table, main
from agentd.errors import UsageError
from agentd.plugins import Installed, Origin, PluginSet


def installed(state: str, reason: str = "") -> Installed:
    return Installed(name="cron", dist="agentd-cron", version="1.1.0", value="agentd_cron", state=state, reason=reason)


CRON = "the schedule rule 'cron' needs plugin cron (agentd-cron 1.1.0, entry point cron = agentd_cron), "


@pytest.mark.parametrize(
    ("plugins", "told"),
    [
        ((), "the schedule rule 'cron' is not installed: pip install 'agentd[cron]'"),
        ((installed("failed", "No module named 'cronsim'"),), CRON + "which failed to load: No module named 'cronsim'"),
        ((installed("disabled"),), CRON + "which plugins.disabled switches off"),
        ((installed("not allowed"),), CRON + "which plugins.allow does not name"),
    ],
)
def test_missing_kind_of_a_known_extra(plugins: tuple[Installed, ...], told: str) -> None:
    assert PluginSet(installed=plugins).missing("schedule_rules", "cron") == told


def test_contested_kind_names_both_owners() -> None:
    owners = (Origin("a", "dist-a", "1"), Origin("b", "dist-b", "2"))
    told = PluginSet(contested={("stores", "redis"): owners}).missing("stores", "redis")
    assert "plugin a (dist-a 1) and plugin b (dist-b 2)" in told


def test_foreign_text_cannot_steer_the_terminal() -> None:
    table = as_table(PluginSet(installed=(installed("failed", "\x1b[2Jgone\x07"),)))
    assert "\x1b" not in table
    assert "\x07" not in table
    assert "?[2Jgone?" in table


def test_unknown_argument() -> None:
    with pytest.raises(UsageError, match="--verbose"):
        main(["--verbose"], {})
