"""Directed graphs: strongly connected components, shortest paths, and which edges close a cycle.

A node is a number, and a graph maps each node to its successors. `components` and `reaching` visit
each edge once, whatever the graph's shape; `path` visits the nodes that it may.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

Node = int
Edge = tuple[Node, Node]
Graph = Mapping[Node, Collection[Node]]


def successors(edges: Iterable[Edge]) -> Graph:
    """The graph of `edges`; the successors of a node are sorted."""
    found: dict[Node, list[Node]] = defaultdict(list)
    for left, right in sorted(edges):
        found[left].append(right)
    return found


def components(after: Graph) -> dict[Node, int]:
    """The number of each node's strongly connected component (Tarjan 1972, without recursion).

    Nodes come component by component, each after all that it leads to.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    component: dict[Node, int] = {}
    stack: list[Node] = []
    for root in sorted({*after, *(one for ones in after.values() for one in ones)}):
        work: list[tuple[Node, Iterator[Node]]] = []
        if root not in index:
            _enter(root, after, index, low, stack, work)
        while work:
            node, remaining = work[-1]
            following = next(remaining, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    _close(node, stack, component, index[node])
            elif following not in index:
                _enter(following, after, index, low, stack, work)
            elif following not in component:
                low[node] = min(low[node], index[following])
    return component


def _enter(
    node: Node,
    after: Graph,
    index: dict[Node, int],
    low: dict[Node, int],
    stack: list[Node],
    work: list[tuple[Node, Iterator[Node]]],
) -> None:
    index[node] = low[node] = len(index)
    stack.append(node)
    work.append((node, iter(after.get(node, ()))))


def _close(node: Node, stack: list[Node], component: dict[Node, int], number: int) -> None:
    while node not in component:
        component[stack.pop()] = number


def path(
    after: Graph,
    begin: Node,
    end: Node,
    marks: Mapping[Node, int],
    accepts: Callable[[int], object],
) -> tuple[list[Node], int]:
    """The shortest path between two nodes, both included, over nodes whose mark is accepted, and
    how many nodes were visited; the path is empty where there is none."""
    before: dict[Node, Node] = {begin: begin}
    queue = deque([begin])
    while queue and end not in before:
        node = queue.popleft()
        for one in after.get(node, ()):
            if one not in before and accepts(marks[one]):
                before[one] = node
                queue.append(one)
    if end not in before:
        return [], len(before)
    way = [end]
    while way[-1] != begin:
        way.append(before[way[-1]])
    return way[::-1], len(before)


def reachable_ends(
    after: Graph, component: Mapping[Node, int], ends: Sequence[Node]
) -> dict[Node, int]:
    """For each node a set of bits: bit n is set where the node leads to `ends[n]`.

    `component` is that of `after`, in its order.
    """
    own: dict[Node, int] = defaultdict(int)
    for n, end in enumerate(ends):
        own[end] |= 1 << n
    bits: dict[int, int] = defaultdict(int)
    for node, number in component.items():
        found = bits[number] | own.get(node, 0)
        for one in after.get(node, ()):
            found |= bits[component[one]]
        bits[number] = found
    return {node: bits[number] for node, number in component.items()}
