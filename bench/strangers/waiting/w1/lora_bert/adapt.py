import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

from lora import inject, mark_only_lora, summary

CKPT = None  # e.g. "./checkpoints/domain-bert"


def get_model(n_labels):
    if CKPT:
        return BertForSequenceClassification.from_pretrained(CKPT, num_labels=n_labels)
    return BertForSequenceClassification(BertConfig(
        vocab_size=200, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=32, num_labels=n_labels))


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 200, (n, 20), generator=g)
    y = (ids[:, 1:] < 40).sum(1).ge(4).long()
    return TensorDataset(ids, y)


def main():
    torch.manual_seed(3)
    model = get_model(2)
    n = inject(model, targets=("query", "key", "value"), r=8, alpha=16, dropout=0.05)
    mark_only_lora(model)
    print(f"{n} layers adapted, {summary(model)}")

    train_dl = DataLoader(make_data(1500, 0), batch_size=32, shuffle=True)
    test_dl = DataLoader(make_data(400, 1), batch_size=200)
    optim = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-3)

    for epoch in range(4):
        model.train()
        total = 0.0
        for ids, y in train_dl:
            out = model(input_ids=ids, labels=y)
            optim.zero_grad()
            out.loss.backward()
            optim.step()
            total += out.loss.item()
        model.eval()
        with torch.no_grad():
            ok = sum((model(input_ids=ids).logits.argmax(-1) == y).sum().item() for ids, y in test_dl)
        norm = sum(p.norm().item() for nme, p in model.named_parameters() if "lora_B" in nme)
        print(f"epoch {epoch} loss {total / len(train_dl):.4f} acc {ok / 400:.3f} |B| {norm:.4f}")

    adapter = {k: v for k, v in model.state_dict().items() if "lora_" in k or k.startswith("classifier")}
    torch.save(adapter, "/tmp/adapter.pt")


if __name__ == "__main__":
    main()
