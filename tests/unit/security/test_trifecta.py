"""The rule of two, per tool."""

from __future__ import annotations

from agentd.config.document import McpServer
from agentd.security.trifecta import explain, reach, tags_of


def server(**fields: object) -> McpServer:
    return McpServer.model_validate({"name": "s", "endpoint": "https://s", **fields})


def test_an_untagged_tool_is_untrusted() -> None:
    tags = {"get*": ["sensitive"], "get_mail": ["untrusted_input"]}
    assert tags_of(tags, "other") == {"untrusted_input"}
    assert tags_of(tags, "get_mail") == {"sensitive", "untrusted_input"}


def test_tools_spelled_out_are_judged_alone() -> None:
    one = server(tags={"*": ["sensitive"], "post": ["egress"], "read": ["untrusted_input"]}, allow=["post"])
    assert reach(one, ["*"], []) == {"sensitive": "s.post", "egress": "s.post"}
    assert explain([one], ["*"], []) == ""


def test_what_cannot_be_reached_does_not_count() -> None:
    one = server(tags={"read": ["untrusted_input", "sensitive"], "post": ["egress"]})
    assert explain([one], ["*"], [])
    assert explain([one], ["s.read"], []) == ""
    assert explain([one], ["*"], ["s.post"]) == ""
    assert explain([server(tags=one.tags, exclude=["post"])], ["*"], []) == ""
    assert explain([server(tags=one.tags, allow=["read"])], ["*"], []) == ""
