"""Teach a tiny Llama to add; only the digits of the result are learnt."""
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, default_data_collator, set_seed

ALPHABET = ["<pad>", "<end>"] + list("0123456789+=")
ID = {c: i for i, c in enumerate(ALPHABET)}
LENGTH = 12


def encode(a, b):
    prompt = [ID[c] for c in f"{a:02d}+{b:02d}="]
    answer = [ID[c] for c in str(a + b)[::-1]] + [ID["<end>"]]
    gap = LENGTH - len(prompt) - len(answer)
    assert gap >= 0 and answer
    return {
        "input_ids": prompt + answer + [ID["<pad>"]] * gap,
        "attention_mask": [1] * (LENGTH - gap) + [0] * gap,
        "labels": [-100] * len(prompt) + answer + [-100] * gap,
    }


def greedy_ids(logits, labels):
    return logits.argmax(-1)


def digit_scores(prediction):
    guess, truth = prediction.predictions[:, :-1], prediction.label_ids[:, 1:]
    counted = truth != -100
    right = (guess == truth) | ~counted
    return {"digit_accuracy": float(((guess == truth) & counted).sum() / counted.sum()),
            "exact": float(right.all(axis=1).mean())}


class LayerwiseTrainer(Trainer):
    """Embeddings (tied with the output layer) get half of the learning rate."""

    def create_optimizer(self, model=None):
        if self.optimizer is None:
            shared, rest = [], []
            for name, p in self.model.named_parameters():
                (shared if "embed_tokens" in name else rest).append(p)
            assert sum(p.numel() for p in shared + rest) == sum(p.numel() for p in self.model.parameters())
            lr = self.args.learning_rate
            self.optimizer = torch.optim.AdamW([{"params": shared, "lr": lr / 2}, {"params": rest, "lr": lr}],
                                               weight_decay=self.args.weight_decay)
        return self.optimizer


if __name__ == "__main__":
    set_seed(18)
    pairs = [(a, b) for a in range(50) for b in range(50)]
    order = np.random.default_rng(18).permutation(len(pairs))
    rows = [encode(*pairs[i]) for i in order]
    config = LlamaConfig(vocab_size=len(ALPHABET), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                         num_attention_heads=4, max_position_embeddings=LENGTH, tie_word_embeddings=True,
                         pad_token_id=ID["<pad>"], bos_token_id=None, eos_token_id=ID["<end>"])
    args = TrainingArguments(output_dir="sums", per_device_train_batch_size=64, per_device_eval_batch_size=100,
                             num_train_epochs=10, learning_rate=3e-3, warmup_steps=10, weight_decay=0.01,
                             lr_scheduler_type="cosine", eval_strategy="epoch", logging_strategy="epoch", save_strategy="no",
                             report_to="none", disable_tqdm=True, use_cpu=not torch.cuda.is_available())
    trainer = LayerwiseTrainer(model=LlamaForCausalLM(config), args=args, train_dataset=rows[:2200], eval_dataset=rows[2200:],
                               data_collator=default_data_collator, compute_metrics=digit_scores,
                               preprocess_logits_for_metrics=greedy_ids)
    trainer.train()
    print(trainer.evaluate())
