"""Directed graphs: strongly connected components, shortest paths, and the edges that close a cycle.

A node is a number, and a graph maps each node to its successors. `components` and `reachable_ends`
visit each edge once, whatever the graph's shape; `path` visits only accepted nodes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

Node = int
Edge = tuple[Node, Node]
Graph = Mapping[Node, Collection[Node]]


def successors(edges: Iterable[Edge]) -> Graph:
    """The graph of `edges`; the successors of a node are sorted."""
    graph: dict[Node, list[Node]] = defaultdict(list)
    for left, right in edges:
        graph[left].append(right)
    for rights in graph.values():
        rights.sort()
    return graph


def components(after: Graph) -> dict[Node, int]:
    """The number of each node's strongly connected component (Tarjan 1972, without recursion).

    The result lists the nodes component by component, each component after all that it reaches.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    component: dict[Node, int] = {}
    stack: list[Node] = []
    work: list[tuple[Node, Iterator[Node]]] = []
    for root in sorted(after):
        following: Node | None = root if root not in index else None
        while work or following is not None:
            if following is not None:
                index[following] = low[following] = len(index)
                stack.append(following)
                work.append((following, iter(after.get(following, ()))))
            node, remaining = work[-1]
            lowest = low[node]
            for following in remaining:
                if following not in index:
                    break
                if index[following] < lowest and following not in component:
                    lowest = index[following]
            else:
                following = None
                work.pop()
                if lowest == index[node]:
                    while node not in component:
                        component[stack.pop()] = lowest
                elif lowest < low[work[-1][0]]:
                    low[work[-1][0]] = lowest
            low[node] = lowest
    return component


def intervals(edges: Iterable[Edge], order: Sequence[Node]) -> list[int]:
    """The number of each node's interval of `order`. All nodes of a cycle are in one interval.

    A cycle has an edge back over each place between its first node and its last. So intervals end
    where no edge leads back. `order` has each node from 0 on once.
    """
    ranks = [0] * len(order)
    for rank, node in enumerate(order):
        ranks[node] = rank
    reach = [*range(len(order))]
    for left, right in edges:
        rank = ranks[left]
        if reach[ranks[right]] < rank:
            reach[ranks[right]] = rank
    numbers, end = [0] * len(order), -1
    number = 0
    for rank, node in enumerate(order):
        if rank > end:
            number = rank
        end = max(end, reach[rank])
        numbers[node] = number
    return numbers


def path(
    after: Graph,
    begin: Node,
    end: Node,
    marks: Mapping[Node, int],
    accepts: Callable[[int], object],
) -> tuple[list[Node], int]:
    """The shortest path between two nodes, both included, over nodes whose mark is accepted, and
    the number of visited nodes. The path is empty if there is none."""
    before: dict[Node, Node] = {begin: begin}
    queue = deque([begin])
    while queue and end not in before:
        node = queue.popleft()
        for successor in after.get(node, ()):
            if successor not in before and accepts(marks[successor]):
                before[successor] = node
                queue.append(successor)
    if end not in before:
        return [], len(before)
    route = [end]
    while route[-1] != begin:
        route.append(before[route[-1]])
    return route[::-1], len(before)


def reachable_ends(
    after: Graph, component: Mapping[Node, int], ends: Sequence[Node]
) -> dict[Node, int]:
    """For each node a set of bits: bit n is set where the node leads to `ends[n]`.

    `component` is the result of `components(after)`, in its order.
    """
    end_bits: dict[Node, int] = defaultdict(int)
    for n, end in enumerate(ends):
        end_bits[end] |= 1 << n
    bits: dict[int, int] = defaultdict(int)
    for node, number in component.items():
        reached = bits[number] | end_bits.get(node, 0)
        for successor in after.get(node, ()):
            reached |= bits[component[successor]]
        bits[number] = reached
    return {node: bits[number] for node, number in component.items()}
