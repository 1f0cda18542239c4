"""Seed model for the chat experiments: tiny GPT-2 on synthetic dialogues, with Accelerate."""
import random

import torch
from accelerate import Accelerator
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, get_cosine_schedule_with_warmup

ITEMS = ["milk", "bread", "rice", "tea", "salt", "honey", "apples", "eggs"]
OPEN = ["where is the {}", "do you sell {}", "how much is the {}"]
CLOSE = ["the {} is in aisle {}", "yes {} is on shelf {}", "one pack of {} costs {}"]


def dialogues(n, seed):
    rnd = random.Random(seed)
    for _ in range(n):
        k, i = rnd.randrange(3), rnd.randrange(len(ITEMS))
        yield OPEN[k].format(ITEMS[i]), CLOSE[k].format(ITEMS[i], (i * 3 + k) % 10)


def build_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", "<eos>"])
    core.train_from_iterator((f"{q} {a}" for q, a in dialogues(500, 0)), trainer)
    tok = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>")
    tok.add_special_tokens({"additional_special_tokens": ["<|user|>", "<|shop|>"]})
    return tok


def main():
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(0)
    tokenizer = build_tokenizer()

    def collate(pairs):
        texts = [f"<|user|> {q} <|shop|> {a} <eos>" for q, a in pairs]
        batch = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
        batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        return batch

    config = GPT2Config(
        vocab_size=tokenizer.vocab_size,
        n_positions=32, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    train = DataLoader(list(dialogues(480, 1)), batch_size=24, shuffle=True, collate_fn=collate)
    dev = DataLoader(list(dialogues(96, 2)), batch_size=48, collate_fn=collate)

    epochs = 4
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 10, epochs * len(train))
    model, optimizer, train, dev, scheduler = accelerator.prepare(model, optimizer, train, dev, scheduler)

    for epoch in range(epochs):
        model.train()
        for batch in train:
            loss = model(**batch).loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            dev_loss = torch.stack([model(**b).loss for b in dev]).mean().item()
        accelerator.print(f"epoch {epoch}: train {loss.item():.3f} dev {dev_loss:.3f}")


if __name__ == "__main__":
    main()
