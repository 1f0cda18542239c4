import torch
from torch import nn

from registry import ACTIVATIONS, HEADS, MODELS


@HEADS.register("linear")
def linear_head(in_features, out_features, activation=None):
    return nn.Sequential(nn.Linear(in_features, out_features), ACTIVATIONS[activation]())


@MODELS.register("textcnn")
class TextCNN(nn.Module):
    def __init__(self, vocab, classes, embedding, filters, dropout, head):
        super().__init__()
        self.embed = nn.Embedding(vocab, embedding, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(embedding, n, k) for k, n in filters)
        self.drop = nn.Dropout(dropout)
        self.head = HEADS.build(head, sum(n for _, n in filters), classes)

    def forward(self, tokens):
        e = self.embed(tokens).transpose(1, 2)
        pooled = [c(e).relu().amax(-1) for c in self.convs]
        return self.head(self.drop(torch.cat(pooled, 1)))
