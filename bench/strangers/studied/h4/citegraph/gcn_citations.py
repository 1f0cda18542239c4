import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.RandomState(8)
torch.manual_seed(8)

NUM_NODES, NUM_TOPICS, NUM_WORDS = 500, 5, 80


def citation_graph():
    topic = rng.randint(0, NUM_TOPICS, NUM_NODES)
    same = topic[:, None] == topic[None, :]
    prob = np.where(same, 0.035, 0.004)
    upper = np.triu(rng.rand(NUM_NODES, NUM_NODES) < prob, 1)
    adj = (upper | upper.T).astype(np.float32)
    word_pref = rng.rand(NUM_TOPICS, NUM_WORDS) < 0.2
    words = (rng.rand(NUM_NODES, NUM_WORDS) < (0.05 + 0.08 * word_pref[topic])).astype(np.float32)
    return torch.from_numpy(adj), torch.from_numpy(words), torch.from_numpy(topic)


def sym_norm(adj):
    a = adj + torch.eye(len(adj))
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


def make_masks(n, labels, per_topic=20, num_test=400):
    """per_topic labelled nodes for training, num_test random ones for testing, what is left for validation"""
    train = torch.zeros(n, dtype=torch.bool)
    for t in range(NUM_TOPICS):
        members = torch.nonzero(labels == t).flatten()
        train[members[torch.randperm(len(members))[:per_topic]]] = True
    rest = torch.nonzero(~train).flatten()
    rest = rest[torch.randperm(len(rest))]
    test = torch.zeros(n, dtype=torch.bool)
    test[rest[:num_test]] = True
    val = ~(train | test)
    return train, val, test


class GCN(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.w1 = nn.Linear(NUM_WORDS, hidden)
        self.w2 = nn.Linear(hidden, NUM_TOPICS)

    def forward(self, a_hat, x):
        h = F.dropout(F.relu(a_hat @ self.w1(x)), 0.5, self.training)
        return a_hat @ self.w2(h)


def masked_accuracy(logits, labels, mask):
    correct = (logits.argmax(1) == labels) & mask
    return correct.sum().item() / max(int(mask.sum()), 1)


adj, words, topic = citation_graph()
a_hat = sym_norm(adj)
train_mask, val_mask, test_mask = make_masks(NUM_NODES, topic)

net = GCN()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
best_val, best_test = -1.0, 0.0

for epoch in range(100):
    net.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(net(a_hat, words)[train_mask], topic[train_mask])
    loss.backward()
    optimizer.step()

    net.eval()
    with torch.no_grad():
        logits = net(a_hat, words)
    val_acc = masked_accuracy(logits, topic, val_mask)
    if val_acc > best_val:
        best_val, best_test = val_acc, masked_accuracy(logits, topic, test_mask)
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1:3d}  loss {loss.item():.3f}  val {val_acc:.3f}")

print(f"test accuracy of the model selected on validation: {best_test:.3f}")
