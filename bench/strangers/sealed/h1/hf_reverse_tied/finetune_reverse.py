"""GPT-2 learns to reverse short strings, only the answer tokens count in the loss."""
import warnings

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

warnings.filterwarnings("ignore")
SEP, N, LETTERS = 10, 4, 10


class Reverse(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        src = torch.randint(0, LETTERS, (size, N), generator=g)
        sep = torch.full((size, 1), SEP)
        self.ids = torch.cat([src, sep, src.flip(1)], 1)
        self.labels = self.ids.clone()
        self.labels[:, : N + 1] = -100

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class NoDecayTrainer(Trainer):
    """Embedding and norms are excluded from weight decay; the position table keeps its sinusoids."""

    def create_optimizer(self, model=None):
        if self.optimizer is None:
            matrices = [p for n, p in self.model.named_parameters() if p.requires_grad and p.ndim == 2 and "wte" not in n]
            others = [p for n, p in self.model.named_parameters() if p.requires_grad and (p.ndim != 2 or "wte" in n)]
            self.optimizer = torch.optim.AdamW(
                [{"params": matrices, "weight_decay": self.args.weight_decay},
                 {"params": others, "weight_decay": 0.0}], lr=self.args.learning_rate)
        return self.optimizer


def sinusoids(n, dim):
    pos = torch.arange(n)[:, None]
    freq = torch.exp(-torch.arange(0, dim, 2) / dim * torch.log(torch.tensor(100.0)))
    return torch.stack([torch.sin(pos * freq), torch.cos(pos * freq)], -1).flatten(1)


def build():
    cfg = GPT2Config(vocab_size=LETTERS + 1, n_positions=2 * N + 1, n_embd=48, n_layer=2, n_head=4,
                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=SEP, eos_token_id=SEP,
                     tie_word_embeddings=True)
    model = GPT2LMHeadModel(cfg)
    with torch.no_grad():
        model.transformer.wpe.weight.copy_(0.3 * sinusoids(2 * N + 1, 48))
    model.transformer.wpe.weight.requires_grad_(False)
    return model


def exact_match(model, data):
    model.eval()
    with torch.no_grad():
        pred = model(data.ids).logits[:, N:-1].argmax(-1)
    return (pred == data.ids[:, N + 1:]).all(1).float().mean().item()


if __name__ == "__main__":
    set_seed(1)
    model, test = build(), Reverse(300, 7)
    print("exact match before:", exact_match(model, test))
    args = TrainingArguments(
        output_dir="/tmp/reverse", per_device_train_batch_size=64, num_train_epochs=3, learning_rate=4e-3,
        weight_decay=0.05, warmup_steps=15, lr_scheduler_type="linear", save_strategy="no", report_to="none",
        disable_tqdm=True, logging_steps=50, use_cpu=True)
    NoDecayTrainer(model=model, args=args, train_dataset=Reverse(3000, 0)).train()
    print("exact match after:", round(exact_match(model, test), 3))
