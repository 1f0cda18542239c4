import json
import os
import random
import sys
import time

import numpy as np
import torch
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Subset, TensorDataset

TAGS = ["beach", "forest", "city", "sunset", "snow", "people"]


class TagHead(nn.Module):
    def __init__(self, n_features, n_tags, hidden=64, p_drop=0.3):
        super().__init__()
        self.norm = nn.BatchNorm1d(n_features)
        self.fc1 = nn.Linear(n_features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, n_tags)
        self.act = nn.GELU()
        self.drop = nn.Dropout(p_drop)

    def forward(self, x):
        x = self.norm(x)
        x = self.drop(self.act(self.fc1(x)))
        x = self.drop(self.act(self.fc2(x)))
        return self.out(x)


class JsonLogger:
    def __init__(self, stream=sys.stdout):
        self.stream = stream
        self.start = time.time()

    def log(self, **fields):
        fields = {k: round(v, 5) if isinstance(v, float) else v for k, v in fields.items()}
        fields["elapsed"] = round(time.time() - self.start, 2)
        self.stream.write(json.dumps(fields) + "\n")
        self.stream.flush()


def build_datasets():
    x, y = make_multilabel_classification(
        n_samples=4000, n_features=30, n_classes=len(TAGS), n_labels=2, random_state=7
    )
    dataset = TensorDataset(torch.tensor(x).float(), torch.tensor(y).float())
    split = int(0.8 * len(dataset))
    indices = torch.randperm(len(dataset)).tolist()
    return Subset(dataset, indices[:split]), Subset(dataset, indices[split:])


def validate(model, loader, criterion):
    model.eval()
    losses, predictions, truths = [], [], []
    with torch.inference_mode():
        for features, tags in loader:
            logits = model(features)
            losses.append(criterion(logits, tags).item())
            predictions.append(torch.sigmoid(logits) > 0.5)
            truths.append(tags)
    predicted = torch.cat(predictions).int().numpy()
    truth = torch.cat(truths).int().numpy()
    return {
        "val_loss": float(np.mean(losses)),
        "f1_micro": float(f1_score(truth, predicted, average="micro", zero_division=0)),
        "f1_macro": float(f1_score(truth, predicted, average="macro", zero_division=0)),
    }


def train(epochs=10, batch_size=64, lr=2e-3):
    train_set, val_set = build_datasets()
    train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, num_workers=0)
    val_loader = DataLoader(val_set, batch_size=200)

    model = TagHead(n_features=30, n_tags=len(TAGS))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    logger = JsonLogger()

    step = 0
    for epoch in range(epochs):
        model.train()
        for features, tags in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(features), tags)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 20 == 0:
                logger.log(event="train", step=step, loss=loss.item())
        logger.log(event="eval", epoch=epoch, **validate(model, val_loader, criterion))
        scheduler.step()
    torch.save(model.state_dict(), "tag_head.pt")


if __name__ == "__main__":
    seed = int(os.environ.get("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    train()
