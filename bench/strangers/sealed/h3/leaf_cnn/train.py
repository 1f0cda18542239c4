import torch
import yaml
from torch.utils.data import DataLoader

from dataset import Leaves
from net import LeafNet


def setup(cfg):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    layout = torch.channels_last if cfg["model"]["channels_last"] else torch.contiguous_format
    model = LeafNet(cfg["model"]["width"], cfg["data"]["size"], 4).to(device, memory_format=layout)
    return model, device, layout


def accuracy(model, loader, device, layout):
    model.eval()
    good = n = 0
    with torch.no_grad():
        for img, lab in loader:
            out = model(img.to(device, memory_format=layout))
            good += (out.argmax(1).cpu() == lab).sum().item()
            n += len(lab)
    return good / n


def main():
    with open("config.yaml") as f:
        cfg = yaml.safe_load(f)
    torch.manual_seed(cfg["data"]["seed"])
    d = cfg["data"]
    train = DataLoader(Leaves(d["n"], d["size"], d["seed"]), cfg["optim"]["batch"], shuffle=True)
    valid = DataLoader(Leaves(d["n"] // 4, d["size"], d["seed"] + 1), 100)
    model, device, layout = setup(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["optim"]["lr"])
    loss_fn = torch.nn.CrossEntropyLoss()
    for epoch in range(cfg["optim"]["epochs"]):
        model.train()
        for img, lab in train:
            img, lab = img.to(device, memory_format=layout), lab.to(device)
            loss = loss_fn(model(img), lab)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.3f} valid acc {accuracy(model, valid, device, layout):.3f}")


if __name__ == "__main__":
    main()
