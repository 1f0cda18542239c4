"""Tagging with padded sentences: padding is ignored by the loss and masked in the attention."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(38)
sentences = [torch.randint(1, 30, (int(n),)) for n in torch.randint(3, 12, (500,))]
pairs = [(s, (s + s.roll(1)) % 4) for s in sentences]


def collate(batch):
    words = pad_sequence([w for w, _ in batch], batch_first=True)
    tags = pad_sequence([t for _, t in batch], batch_first=True, padding_value=-100)
    return {"words": words, "tags": tags}


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 32, padding_idx=0)
        self.places = nn.Embedding(16, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 4)

    def forward(self, words):
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        return self.head(self.encoder(x, src_key_padding_mask=words == 0))


loader = DataLoader(pairs, batch_size=25, shuffle=True, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=0.05)
for epoch in range(8):
    for batch in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch["words"]).transpose(1, 2), batch["tags"])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
