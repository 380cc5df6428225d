"""Tests see nothing of the environment they are run in; properties are tried little.

With ``--hypothesis-profile=soak`` they are tried a lot.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline and no health check of times: what a busy machine takes says nothing about a property.
# CI tries the same examples each time: it judges a change. People and soak runs search for what nobody thought of.
settings.register_profile(
    "little",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.register_profile("soak", settings.get_profile("little"), max_examples=5000, derandomize=False)
settings.load_profile("little")

OURS = ("AGENTD_", "AGENT_", "INSTRUCTION", "INTELLIGENCE", "OTEL_", "XDG_")
PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}
OTHERS = {"HOSTNAME", "TRACEPARENT", "TRACESTATE", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONWARNINGS"}


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An environment of our own, for this process and what it starts. HOME is an empty directory."""
    for name in list(os.environ):
        if name.startswith(OURS) or name.upper() in PROXIES | OTHERS:
            del os.environ[name]
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))
