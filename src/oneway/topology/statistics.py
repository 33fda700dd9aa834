"""Graph statistics: what a trust graph looks like, in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from oneway.topology.graph import TrustGraph
from oneway.topology.stationary import stationary_masses


@dataclass(frozen=True)
class GraphStatistics:
    """Numbers about a graph; masses are those of its largest strong component."""

    num_nodes: int
    num_edges: int
    weighted: bool
    reciprocity: float
    strong_components: int
    largest_component: int
    upstream: int
    middle: int
    downstream: int
    apart: int
    most_receivers: int
    most_senders: int
    smallest_stationary_mass: float
    largest_stationary_mass: float

    def as_dict(self) -> dict[str, int | float | bool]:
        """For programs."""
        return asdict(self)

    def as_facts(self) -> dict[str, str]:
        """For people."""
        whole = self.largest_component == self.num_nodes
        return {
            "nodes": f"{self.num_nodes:,}",
            "edges": f"{self.num_edges:,}{', weighted' if self.weighted else ''}",
            "reciprocity": f"{self.reciprocity:.1%} of the edges go both ways",
            "strong components": f"{self.strong_components:,}"
            + (", the graph is strongly connected" if whole else "")
            + ("" if whole else f", the largest has {self.largest_component:,} of the nodes"),
            **({} if whole else {"one-way streets": self._one_way_streets}),
            "most receivers": f"{self.most_receivers:,} of one node",
            "most senders": f"{self.most_senders:,} to one node",
            "stationary mass": f"{self.smallest_stationary_mass:.3g} to "
            f"{self.largest_stationary_mass:.3g}, where 1 is an equal share"
            + ("" if whole else " of the largest component"),
        }

    @property
    def _one_way_streets(self) -> str:
        return (
            f"{self.upstream:,} nodes upstream (no edge into their component), {self.downstream:,} "
            f"downstream (no edge out of it), {self.middle:,} in the middle, {self.apart:,} apart"
        )


def graph_statistics(graph: TrustGraph) -> GraphStatistics:
    """Measure a graph."""
    count, labels = graph.strong_components()
    component = graph if count == 1 else graph.largest_strong_component()
    masses = stationary_masses(component.mixing())
    sides = {name: int(nodes.sum()) for name, nodes in graph.sides()._asdict().items()}
    degrees = (np.bincount(nodes, minlength=1) for nodes in graph.edges())
    most_receivers, most_senders = (int(degree.max()) for degree in degrees)
    return GraphStatistics(
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        weighted=graph.weights is not None,
        reciprocity=graph.reciprocity,
        strong_components=count,
        largest_component=int(np.bincount(labels).max()),
        **sides,
        most_receivers=most_receivers,
        most_senders=most_senders,
        smallest_stationary_mass=float(masses.min()),
        largest_stationary_mass=float(masses.max()),
    )
