"""ULMFiT-like gradual unfreezing with discriminative learning rates."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertModel

SCHEDULE = {0: ["head"], 2: ["layer1"], 3: ["layer0", "embeddings"]}
BASE_LR, DECAY = 3e-3, 0.4


class Tagger(nn.Module):
    def __init__(self, n_tags=3):
        super().__init__()
        self.bert = BertModel(BertConfig(vocab_size=120, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                                         intermediate_size=96, max_position_embeddings=16), add_pooling_layer=False)
        self.head = nn.Linear(48, n_tags)

    def part(self, name):
        return {"head": self.head, "embeddings": self.bert.embeddings,
                "layer0": self.bert.encoder.layer[0], "layer1": self.bert.encoder.layer[1]}[name]

    def forward(self, ids):
        return self.head(self.bert(input_ids=ids).last_hidden_state)


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(2, 120, (n, 12), generator=g)
    prev = ids.roll(1, 1)
    tags = (ids % 2) + ((ids % 2 == 1) & (prev % 2 == 1)).long()
    tags[:, 0] = ids[:, 0] % 2
    return TensorDataset(ids, tags)


def main():
    torch.manual_seed(0)
    model = Tagger()
    train = DataLoader(make(1000, 0), 32, shuffle=True)
    dev_ids, dev_tags = make(300, 1).tensors
    model.requires_grad_(False)
    optimizer = None
    for epoch in range(8):
        for name in SCHEDULE.get(epoch, []):
            module = model.part(name)
            module.requires_grad_(True)
            stage = sorted(SCHEDULE).index(epoch)
            group = {"params": list(module.parameters()), "lr": BASE_LR * DECAY ** stage}
            if optimizer is None:
                optimizer = torch.optim.AdamW([group])
            else:
                optimizer.add_param_group(group)
        model.train()
        tot = 0.0
        for ids, tags in train:
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
            optimizer.step()
            tot += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(dev_ids).argmax(-1) == dev_tags).float().mean().item()
        n = sum(p.numel() for p in model.parameters() if p.requires_grad)
        print(f"epoch {epoch} trainable {n} loss {tot / len(train):.4f} dev acc {acc:.3f}")


if __name__ == "__main__":
    main()
