"""Makes the in-house base model (stands for the big one that the platform team ships)."""
import torch
from transformers import BertConfig, BertForSequenceClassification

from common import LENGTH, VOCAB, Utterances


def build(path, steps=60):
    torch.manual_seed(0)
    config = BertConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=LENGTH, num_labels=6)
    model = BertForSequenceClassification(config)
    data = Utterances(3000, intents=6, cue_seed=1, seed=1)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        rows = torch.randint(0, len(data), (32,))
        loss = model(input_ids=data.ids[rows], labels=data.labels[rows]).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"base model: loss {loss.item():.3f}")
    model.to(torch.bfloat16).save_pretrained(path)
