import torch
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader

from millib import BagSet, NoisyOrNet, bag_nll, collate_bags


def main():
    torch.manual_seed(22)
    train = DataLoader(BagSet(400, 1), batch_size=20, shuffle=True, collate_fn=collate_bags)
    test = DataLoader(BagSet(160, 2), batch_size=80, collate_fn=collate_bags)
    model = NoisyOrNet(12)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    for epoch in range(10):
        model.train()
        for tiles, real, label in train:
            loss = bag_nll(model(tiles, real), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            pairs = [(model(tiles, real), label) for tiles, real, label in test]
        p, y = (torch.cat(c) for c in zip(*pairs))
        print(f"epoch {epoch} nll {bag_nll(p, y).item():.4f} auc {roc_auc_score(y.numpy(), p.numpy()):.4f}")


if __name__ == "__main__":
    main()
