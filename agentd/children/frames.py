"""The framed protocol between the supervisor and a child: a length and a JSON object.

A frame is four bytes of big-endian length and that many bytes of UTF-8 JSON, an object whose `t` names it. A torn or
oversized frame ends the child: a stream that lost its place cannot find it again.

From the child: `hello {pid}` · `log {event, level, msg, fields}` · `catalogue {servers}` (what each MCP server offers,
or why not) · `permit {id, call, tool, args, digest, key}` (asks leave before each tool call) · `tool {id, name, args}`
(an internal tool, served by the supervisor) · `usage {tokens_in, tokens_out, reported}` · `message {message}` (one
more message of the conversation) · `result {status, output, rounds, tool_calls, tokens_in, tokens_out, err}`.

To the child: `work {…}` (the first frame) · `proceed {ok, msg}` (answers `catalogue`) · `permit {id, ok, reason}` ·
`tool {id, value, is_error}` · `cancel {reason, now}` (`now`: also give up a tool call that runs).
"""

from __future__ import annotations

import json
import struct
from typing import Any

Frame = dict[str, Any]

MAX_FRAME = 64 << 20
"""Bytes. A larger frame is refused on both sides."""

_HEAD = struct.Struct(">I")


class FrameError(Exception):
    """The stream is not, or no longer, a stream of frames."""


def encode(frame: Frame) -> bytes:
    """`frame` as bytes, its head included. Raises :class:`FrameError` when it is too large."""
    body = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes exceeds {MAX_FRAME}")
    return _HEAD.pack(len(body)) + body


class Decoder:
    """Cuts a byte stream into frames; sans-I/O."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by `data`, in order. Raises :class:`FrameError` for anything else."""
        self._buffer += data
        frames: list[Frame] = []
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            if size > MAX_FRAME:
                raise FrameError(f"a frame announces {size} bytes")
            end = _HEAD.size + size
            if len(self._buffer) < end:
                break
            body = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            try:
                frame = json.loads(body.decode("utf-8", "surrogatepass"))
            except (ValueError, RecursionError) as e:
                raise FrameError(f"a frame is no JSON: {e}") from e
            if not isinstance(frame, dict) or not isinstance(frame.get("t"), str):
                raise FrameError("a frame is no object with a type")
            frames.append(frame)
        return frames
