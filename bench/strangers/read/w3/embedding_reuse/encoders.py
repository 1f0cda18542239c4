from torch import nn


class TextEncoder(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        keep = (ids != 0).unsqueeze(-1)
        return (h * keep).sum(1) / keep.sum(1).clamp(min=1)


class TopicModel(nn.Module):
    def __init__(self, vocab, topics):
        super().__init__()
        self.encoder = TextEncoder(vocab)
        self.topic_head = nn.Linear(32, topics)

    def forward(self, ids):
        return self.topic_head(self.encoder(ids))


class Sentiment(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.text = TextEncoder(vocab)
        self.score = nn.Linear(32, 1)

    def forward(self, ids):
        return self.score(self.text(ids)).squeeze(1)
