import torch
import torch.nn as nn
import torch.nn.functional as F


def normalized_adjacency(edges, n):
    i = torch.cat([edges, edges.flip(0), torch.arange(n).repeat(2, 1)], dim=1)
    a = torch.sparse_coo_tensor(i, torch.ones(i.size(1)), (n, n)).coalesce()
    row, col = a.indices()
    v = torch.ones(row.numel())
    deg = torch.zeros(n).index_add_(0, row, v)
    w = deg[row].rsqrt() * v * deg[col].rsqrt()
    return torch.sparse_coo_tensor(a.indices(), w, (n, n)).coalesce()


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, n_feat, n_hid, n_class, dropout=0.5):
        super(GCN, self).__init__()
        self.gc1 = GraphConv(n_feat, n_hid)
        self.gc2 = GraphConv(n_hid, n_class)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return F.log_softmax(x, dim=1)
