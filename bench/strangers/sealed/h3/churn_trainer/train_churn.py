import logging

import torch
from torch.utils.data import DataLoader

from core.churn import ChurnDataset, ChurnNet, ChurnTrainer


def main():
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    torch.manual_seed(0)
    train = DataLoader(ChurnDataset(2000, 0), batch_size=64, shuffle=True)
    valid = DataLoader(ChurnDataset(2000, 1), batch_size=256)
    model = ChurnNet()
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01},
                                   {"params": rest, "weight_decay": 0.0}], lr=5e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=20)
    ChurnTrainer(model, optimizer, scheduler).fit(train, valid, epochs=3)


if __name__ == "__main__":
    main()
