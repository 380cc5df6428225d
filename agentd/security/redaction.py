"""Keeps credentials out of what people read: by the name of a field, by the shape of a value, by the value itself.

A registered secret is hidden in every form a log may take it in. None of this replaces care: code never hands a
credential to a message in the first place, and this is the net below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

HIDDEN = "***"
_SHORTEST = 4
"""Characters. A shorter secret would blank half of the log and protect nothing."""

_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET_WORDS = {"token", "secret", "password", "passwd", "passphrase", "pwd", "authorization", "credential",
                 "credentials", "cookie", "apikey", "bearer", "jwt"}  # fmt: skip
_SECRET_PAIRS = {f"{word} key" for word in ("api", "private", "access", "secret", "signing", "encryption", "master")}

# Linear in the text: no alternative can begin inside what another attempt has already read.
_SHAPES = re.compile(
    r"""
    (?P<scheme>\b[Bb](?:earer|EARER)\s+)(?!realm=|error=|scope=|resource_metadata=)[A-Za-z0-9._~+/=-]{6,}
  | (?P<basic>\b[Bb](?:asic|ASIC)\s+)(?=[A-Za-z]*[0-9A-Z+/=])[A-Za-z0-9+/]{8,}={0,2}
  | (?P<url>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://)[^\s/?\#"'<>\\@]*(?:@[^\s/?\#"'<>\\@]*)*@
  | (?P<pair>\b(?i:access_token|refresh_token|id_token|api_?key|token|password|client_secret|secret|signature|sig)=)
      [^\s&"'\\<>;,]+
  | (?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16}
      |eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*)
    """,
    re.VERBOSE,
)
_HINTS = ("://", "=", "earer ", "asic ", "EARER ", "ASIC ", "sk-", "gh", "xox", "AKIA", "eyJ")


@lru_cache(maxsize=4096)
def secret_name(name: str) -> bool:
    """Whether a field, header or variable called `name` is one that holds a credential.

    >>> [n for n in ("api_key", "X-Api-Key", "clientSecret", "max_tokens", "token_file", "claim_key") if secret_name(n)]
    ['api_key', 'X-Api-Key', 'clientSecret']
    """
    words = [w.lower() for w in _WORDS.findall(name)]
    return bool(words) and (words[-1] in _SECRET_WORDS or " ".join(words[-2:]) in _SECRET_PAIRS)


@lru_cache(maxsize=4096)
def _secret_among(names: tuple[str, ...]) -> bool:
    return any(map(secret_name, names))


class Redactor:
    """Hides what it was told of and what looks like a credential."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: frozenset[str] = frozenset()
        self._exact: re.Pattern[str] | None = None
        for secret in secrets:
            self.register(secret)

    def register(self, secret: str) -> None:
        """Hide `secret` from now on, also where it was escaped for JSON or for a URL."""
        secret = secret.strip()
        if len(secret) < _SHORTEST:
            return
        escaped = (json.dumps(secret, ensure_ascii=a)[1:-1] for a in (True, False))
        forms = self._forms | {secret, *escaped, quote(secret, safe=""), quote(secret)}
        if forms != self._forms:
            self._exact = re.compile("|".join(re.escape(f) for f in sorted(forms, key=len, reverse=True)))
            self._forms = forms

    def suspects(self, line: str, fields: Mapping[str, Any]) -> bool:
        """Whether `line`, which encodes `fields`, may hold something to hide: quick, and rather yes than no."""
        for form in self._forms:
            if form in line:
                return True
        for hint in _HINTS:
            if hint in line and _SHAPES.search(line):
                return True
        if _secret_among(tuple(fields)):
            return True
        return any(type(value) in _NESTED for value in fields.values()) and _secret_among(tuple(_NAMES.findall(line)))

    def text(self, text: str) -> str:
        """`text` with every credential replaced by ``***``."""
        if self._exact is not None:
            text = self._exact.sub(HIDDEN, text)
        if any(hint in text for hint in _HINTS):
            text = _SHAPES.sub(_hide, text)
        return text

    def value(self, value: Any, name: str = "") -> Any:
        """`value` with every credential in it replaced; `name` is the field that holds it. JSON shapes only."""
        if name and value not in (None, "", False, True) and secret_name(name):
            return HIDDEN
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.value(v, str(k)) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(v) for v in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._forms:
            return HIDDEN
        return value


_NESTED = {dict, list, tuple}
_NAMES = re.compile(r'"([A-Za-z][A-Za-z0-9_.-]{2,63})":')


def _hide(found: re.Match[str]) -> str:
    kept = next((part for part in found.groups() if part), "")
    return f"{kept}{HIDDEN}@" if found.lastgroup == "url" else f"{kept}{HIDDEN}"
