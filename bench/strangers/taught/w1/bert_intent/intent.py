"""Intent classification on our support chats. Stage 1: head only. Stage 2: head + last two encoder blocks."""
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertModel

VOCAB, N_INTENTS, SEQ = 400, 5, 16
STAGE1_EPOCHS, STAGE2_EPOCHS = 2, 5


def load_encoder(path=None):
    if path:
        return BertModel.from_pretrained(path, add_pooling_layer=False)
    cfg = BertConfig(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=4, num_attention_heads=4,
                     intermediate_size=128, max_position_embeddings=SEQ)
    return BertModel(cfg, add_pooling_layer=False)


class IntentClassifier(torch.nn.Module):
    def __init__(self, encoder, n_classes):
        super().__init__()
        self.encoder = encoder
        self.dropout = torch.nn.Dropout(0.1)
        self.classifier = torch.nn.Linear(encoder.config.hidden_size, n_classes)

    def forward(self, input_ids, attention_mask):
        h = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).float()
        pooled = (h * mask).sum(1) / mask.sum(1)
        return self.classifier(self.dropout(pooled))


def fake_chats(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(10, VOCAB, (n, SEQ), generator=g)
    label = torch.randint(0, N_INTENTS, (n,), generator=g)
    first = torch.randint(0, SEQ - 3, (n,), generator=g)
    for i in range(n):
        ids[i, first[i]:first[i] + 3] = 10 + label[i] * 3 + torch.arange(3)
    return TensorDataset(ids, torch.ones_like(ids), label)


def run_epoch(model, loader, optimizer=None):
    train = optimizer is not None
    model.train(train)
    loss_fn = torch.nn.CrossEntropyLoss()
    loss_sum = hits = n = 0
    with torch.set_grad_enabled(train):
        for ids, mask, y in loader:
            logits = model(ids, mask)
            loss = loss_fn(logits, y)
            if train:
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            loss_sum += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, hits / n


def main():
    torch.manual_seed(21)
    model = IntentClassifier(load_encoder(), N_INTENTS)
    train_dl = DataLoader(fake_chats(1200, 0), batch_size=32, shuffle=True)
    dev_dl = DataLoader(fake_chats(300, 1), batch_size=100)

    for p in model.encoder.parameters():
        p.requires_grad = False
    optimizer = torch.optim.AdamW(model.classifier.parameters(), lr=2e-3)
    for e in range(STAGE1_EPOCHS):
        tr = run_epoch(model, train_dl, optimizer)
        print("stage 1", e, "train %.4f/%.3f" % tr, "dev %.4f/%.3f" % run_epoch(model, dev_dl))

    top_blocks = model.encoder.encoder.layer[-2:]
    top_blocks.requires_grad = True
    optimizer = torch.optim.AdamW([
        {"params": model.classifier.parameters(), "lr": 1e-3},
        {"params": top_blocks.parameters(), "lr": 3e-4},
    ], weight_decay=0.01)
    for e in range(STAGE2_EPOCHS):
        tr = run_epoch(model, train_dl, optimizer)
        print("stage 2", e, "train %.4f/%.3f" % tr, "dev %.4f/%.3f" % run_epoch(model, dev_dl))


if __name__ == "__main__":
    main()
