# Weinsorten aus Messwerten, mit der Ereignis-Engine trainiert
import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import Engine

torch.manual_seed(3)

X, y = load_wine(return_X_y=True)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, stratify=y, random_state=3)
skala = StandardScaler().fit(X_tr)
tr = TensorDataset(torch.tensor(skala.transform(X_tr), dtype=torch.float32), torch.tensor(y_tr))
te = TensorDataset(torch.tensor(skala.transform(X_te), dtype=torch.float32), torch.tensor(y_te))
loader = DataLoader(tr, batch_size=16, shuffle=True)

netz = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
optim = torch.optim.AdamW(netz.parameters(), lr=3e-3, weight_decay=1e-2)


def verlust(net, batch):
    xb, yb = batch
    return F.cross_entropy(net(xb), yb)


engine = Engine(netz, optim, verlust)
verlauf = []


@engine.on("epoch_start")
def neue_liste(s):
    s.logs = {"loss": [], "norm": []}


@engine.on("after_loss")
def merke_verlust(s):
    s.logs["loss"].append(s.loss.item())


@engine.on("after_backward")
def begrenze(s):
    norm = nn.utils.clip_grad_norm_(s.net.parameters(), 5.0)
    s.logs["norm"].append(norm.item())


@engine.on("after_backward")
def gradienten_freigeben(s):
    # Speicher sparen, Gradienten zwischen den Schritten nicht behalten
    s.optim.zero_grad(set_to_none=True)


@engine.on("epoch_end")
def pruefen(s):
    s.net.eval()
    with torch.no_grad():
        xb, yb = te.tensors
        genau = (s.net(xb).argmax(1) == yb).float().mean().item()
    verlauf.append(genau)
    if s.epoch % 5 == 0:
        mittel = sum(s.logs["loss"]) / len(s.logs["loss"])
        norm = sum(s.logs["norm"]) / len(s.logs["norm"])
        print(f"Epoche {s.epoch:2d}  Verlust {mittel:.3f}  |g| {norm:.2f}  Test {genau:.3f}")


if __name__ == "__main__":
    engine.run(loader, epochs=20)
    print("letzte Genauigkeit:", round(verlauf[-1], 3))
