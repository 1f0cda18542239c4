"""Two-process data-parallel training on noisy moons; start with torchrun."""

import os

import torch
import torch.distributed as dist
from sklearn.datasets import make_moons
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.fc1 = nn.Linear(2, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    seed = int(os.environ.get("SEED", "0"))
    torch.manual_seed(seed)
    points, side = make_moons(2400, noise=0.12, random_state=seed)
    x = torch.tensor(points, dtype=torch.float32)
    y = torch.tensor(side)
    train_set = TensorDataset(x[:2000], y[:2000])
    test_x, test_y = x[2000:], y[2000:]
    sampler = DistributedSampler(train_set, shuffle=True, seed=seed)
    loader = DataLoader(train_set, batch_size=25, sampler=sampler)
    model = DDP(Net())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        model.train()
        total = torch.zeros(1)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        model.eval()
        with torch.no_grad():
            accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
        if rank == 0:
            mean_loss = total.item() / len(loader) / dist.get_world_size()
            print(
                f"[rank 0] epoch={epoch} loss={mean_loss:.4f} test_acc={accuracy:.4f}", flush=True
            )
            torch.save(model.module.state_dict(), "ddp_model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
