"""What version specifiers admit."""

import pytest

from agentd.distributions import admits


@pytest.mark.parametrize(
    ("clauses", "fits"),
    [
        ("", True),
        (">=1.1,<2", True),
        (">=1.1, <2", True),
        ("==1.1", True),
        ("==1.1.*", True),
        ("==1.2.*", False),
        ("!=1.1.*", False),
        ("!=1.1.0", False),
        ("~=1.1", True),
        ("~=1.2", False),
        ("~=1.0.5", False),
        (">1.1", False),
        (">1.0.9,<=1.1", True),
        (">=2", False),
        (">=1,<1.1", False),
        ("===weird", True),
    ],
)
def test_admits(clauses: str, fits: bool) -> None:
    assert admits(clauses, "1.1.0") is fits
