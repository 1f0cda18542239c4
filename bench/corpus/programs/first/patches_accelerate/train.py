import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from model import TinyViT
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup

NUM_EPOCHS = 7
TRAIN_BATCH_SIZE = 32
EVAL_BATCH_SIZE = 128


def get_dataloaders(seed):
    digits = load_digits()
    images = torch.tensor(digits.images / 8.0 - 1.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    train_idx, eval_idx = train_test_split(
        range(len(labels)), test_size=0.2, random_state=seed, stratify=digits.target
    )
    train_dataset = TensorDataset(images[train_idx], labels[train_idx])
    eval_dataset = TensorDataset(images[eval_idx], labels[eval_idx])
    train_dataloader = DataLoader(train_dataset, shuffle=True, batch_size=TRAIN_BATCH_SIZE)
    eval_dataloader = DataLoader(eval_dataset, shuffle=False, batch_size=EVAL_BATCH_SIZE)
    return train_dataloader, eval_dataloader


def training_function():
    accelerator = Accelerator(cpu=True)
    seed = int(os.environ.get("SEED", "0"))
    set_seed(seed)

    train_dataloader, eval_dataloader = get_dataloaders(seed)
    model = TinyViT()
    optimizer = AdamW(params=model.parameters(), lr=3e-3, weight_decay=0.05)
    lr_scheduler = get_linear_schedule_with_warmup(
        optimizer=optimizer,
        num_warmup_steps=30,
        num_training_steps=len(train_dataloader) * NUM_EPOCHS,
    )
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler
    )
    loss_fn = torch.nn.CrossEntropyLoss()

    for epoch in range(NUM_EPOCHS):
        model.train()
        total_loss = 0.0
        for images, labels in train_dataloader:
            with accelerator.accumulate(model):
                loss = loss_fn(model(images), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            total_loss += loss.detach().float().item()

        model.eval()
        correct, seen = 0, 0
        for images, labels in eval_dataloader:
            with torch.no_grad():
                predictions = model(images).argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, labels))
            correct += (predictions == references).sum().item()
            seen += references.shape[0]
        accelerator.print(
            f"epoch {epoch}:",
            {"train_loss": total_loss / len(train_dataloader), "accuracy": correct / seen},
        )
    accelerator.wait_for_everyone()
    accelerator.save_model(model, "checkpoints", safe_serialization=False)
    accelerator.end_training()


if __name__ == "__main__":
    training_function()
