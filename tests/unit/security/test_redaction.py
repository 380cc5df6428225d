"""No credential survives redaction."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.security.redaction import Redactor, secret_name


@pytest.mark.parametrize("name", ["token", "api_key", "X-Api-Key", "apiKey", "Authorization", "clientSecret",
                                  "password", "db.password", "AGENTD_INTELLIGENCE_TOKEN", "Set-Cookie",
                                  "private-key"])  # fmt: skip
def test_names_of_credentials(name: str) -> None:
    assert secret_name(name)


@pytest.mark.parametrize("name", ["tokens", "tokens_in", "max_tokens", "token_file", "claim_key", "key", "keyed",
                                  "monkey", "idempotency_key", "secret_count", "lease_id", "author"])  # fmt: skip
def test_names_that_only_sound_like_it(name: str) -> None:
    assert not secret_name(name)


@pytest.mark.parametrize(("text", "hidden"), [
    ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
    ("bearer eyJhbGciOi", "bearer ***"),
    ("Basic dXNlcjpwYXNz", "Basic ***"),
    ("see https://user:p%40ss@example.com/x?y=1", "see https://***@example.com/x?y=1"),
    ("http://a@b:c@proxy:3128", "http://***@proxy:3128"),
    ("GET /x?access_token=s3cr3t&page=2", "GET /x?access_token=***&page=2"),
    ("key sk-abcdefghijklmnop1234 is bad", "key *** is bad"),
    ("password=ab*cd", "password=***"),
    ("ghp_abcdefghijklmnopqrstuvwxyz", "***"),
])  # fmt: skip
def test_shapes_of_credentials(text: str, hidden: str) -> None:
    assert Redactor().text(text) == hidden


@pytest.mark.parametrize("text", ['Bearer realm="x"', "basic authentication", "https://example.com/a@b", "a=b",
                                  "mail me@example.com", "max_tokens=5"])  # fmt: skip
def test_leaves_the_rest_alone(text: str) -> None:
    assert Redactor().text(text) == text


def test_values_by_the_name_of_their_field() -> None:
    given_ = {"headers": {"Authorization": "x", "Accept": "y"}, "password": "", "list": [{"token": "t", "n": 1}]}
    assert Redactor().value(given_) == {
        "headers": {"Authorization": "***", "Accept": "y"}, "password": "", "list": [{"token": "***", "n": 1}]
    }  # fmt: skip


@given(
    st.text(min_size=4, max_size=40).filter(lambda s: len(s.strip()) >= 4), st.text(max_size=20), st.text(max_size=20)
)
def test_a_registered_secret_is_hidden_in_values_and_in_their_json(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    redactor = Redactor([secret])
    clean = redactor.value({"a": before + secret + after, "b": [secret]})
    assert clean["b"] == ["***"]
    for ascii_only in (True, False):
        text = json.dumps({"a": secret}, ensure_ascii=ascii_only)
        assert redactor.suspects(text, {})
    if "*" not in secret:
        assert secret not in redactor.text(before + secret)[len(before) :] or secret in before + "***"


def test_a_secret_that_is_a_number_is_hidden_and_the_line_stays_json() -> None:
    assert Redactor(["12345678"]).value({"pin": 12345678, "other": 5}) == {"pin": "***", "other": 5}


def test_short_secrets_are_not_registered() -> None:
    assert Redactor(["abc"]).text("abcabc") == "abcabc"


@pytest.mark.parametrize(
    "text", ["eyJaaaaaaaaaaaa-", "Bearer ", "x://", "@", "x://@", "sk-", "basic A", "eyJaaaaaaaaaa.", "token="]
)
def test_no_text_makes_the_search_slow(text: str) -> None:
    Redactor().text(text * (1_000_000 // len(text)))  # quadratic would not end within the test's time limit
