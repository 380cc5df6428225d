"""Facts of a directed graph given as successor lists; pure. Vertices are 0…n-1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Edges = Sequence[Iterable[int]]


def cycle(out: Edges) -> list[int]:
    """The vertices of one cycle in order, empty when there is none."""
    state = [0] * len(out)  # 0 unseen, 1 on the trail, 2 done
    for root in range(len(out)):
        if state[root]:
            continue
        trail = [root]
        walks = [iter(out[root])]
        state[root] = 1
        while walks:
            for v in walks[-1]:
                if state[v] == 1:
                    return trail[trail.index(v) :]
                if state[v] == 0:
                    state[v] = 1
                    trail.append(v)
                    walks.append(iter(out[v]))
                    break
            else:
                state[trail.pop()] = 2
                walks.pop()
    return []


def reach(out: Edges, roots: Iterable[int]) -> set[int]:
    """`roots` and everything downstream of them."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for v in out[stack.pop()]:
            if v not in seen:
                seen.add(v)
                stack.append(v)
    return seen
