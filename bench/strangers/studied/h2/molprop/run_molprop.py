import torch
from torch.utils.data import DataLoader

from gnn import MolNet
from graphs import collate, dataset


def main(epochs=10, lr=8e-3):
    torch.manual_seed(0)
    train = DataLoader(dataset(500, 1), batch_size=25, shuffle=True, collate_fn=collate)
    test = DataLoader(dataset(120, 2), batch_size=60, collate_fn=collate)
    net = MolNet(4)
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for b in train:
            opt.zero_grad()
            loss = torch.nn.functional.l1_loss(net(b), b.y)
            loss.backward()
            opt.step()
            total += loss.item()
        sched.step()
        net.eval()
        with torch.no_grad():
            mae = sum((net(b) - b.y).abs().sum().item() for b in test) / len(test.dataset)
        print(f"epoch {epoch}  train {total / len(train):.4f}  test MAE {mae:.4f}")


if __name__ == "__main__":
    main()
