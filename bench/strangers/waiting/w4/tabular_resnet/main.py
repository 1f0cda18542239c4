"""Forest-cover style benchmark for the tabular resnet.  python main.py [config.yaml]"""
import sys

import torch
import torch.nn.functional as F
import yaml
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from resnet import build


def get_data(seed):
    X, y = make_classification(4000, 30, n_informative=14, n_classes=5, class_sep=1.4, random_state=seed)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, random_state=seed)
    sc = StandardScaler().fit(X_tr)
    t = lambda a: torch.tensor(sc.transform(a), dtype=torch.float32)
    return t(X_tr), torch.tensor(y_tr), t(X_te), torch.tensor(y_te)


def main(path):
    with open(path) as f:
        cfg = yaml.safe_load(f)
    torch.manual_seed(cfg["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    X_tr, y_tr, X_te, y_te = (t.to(device) for t in get_data(cfg["seed"]))
    net = build(cfg, X_tr.size(1), 5, device)
    dtype = next(net.parameters()).dtype
    oc = cfg["optim"]
    opt = torch.optim.SGD(net.parameters(), lr=oc["lr"], momentum=oc["momentum"],
                          weight_decay=oc["weight_decay"], nesterov=True)

    for epoch in range(oc["epochs"]):
        net.train()
        for idx in torch.randperm(len(X_tr), device=device).split(oc["batch_size"]):
            logits = net(X_tr[idx].to(dtype))
            loss = F.cross_entropy(logits.float(), y_tr[idx])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        if epoch % 5 == 4:
            net.eval()
            with torch.no_grad():
                acc = (net(X_te.to(dtype)).argmax(1) == y_te).float().mean().item()
            print(f"epoch {epoch + 1:3d} train loss {loss.item():.4f} test acc {acc:.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "config.yaml")
