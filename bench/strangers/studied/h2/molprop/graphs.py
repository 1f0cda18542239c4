from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Graph:
    x: Tensor            # (nodes, features)
    edge_index: Tensor   # (2, edges)
    y: float


@dataclass
class Batch:
    x: Tensor
    edge_index: Tensor
    graph_id: Tensor
    y: Tensor


def collate(graphs):
    """Disjoint union of the graphs."""
    edges, ids, shift = [], [], 0
    for k, g in enumerate(graphs):
        edges.append(g.edge_index + shift)
        ids.append(torch.full((len(g.x),), k))
        shift += g.edge_index.shape[1]
    return Batch(
        x=torch.cat([g.x for g in graphs]),
        edge_index=torch.cat(edges, dim=1),
        graph_id=torch.cat(ids),
        y=torch.tensor([g.y for g in graphs]),
    )


def random_molecule(g, n_types=4):
    n = int(torch.randint(6, 12, (1,), generator=g))
    types = torch.randint(n_types, (n,), generator=g)
    parent = torch.tensor([int(torch.randint(i, (1,), generator=g)) for i in range(1, n)])
    child = torch.arange(1, n)
    edge_index = torch.stack([torch.cat([parent, child]), torch.cat([child, parent])])
    # property: bonds between unlike neighbours plus a contribution of the heavy type
    y = (types[parent] != types[child]).float().mean() + 0.3 * (types == 3).float().mean()
    return Graph(torch.nn.functional.one_hot(types, n_types).float(), edge_index, float(y))


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    return [random_molecule(g) for _ in range(n)]
