import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset, random_split

from adv import pgd, robust_accuracy

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)

d = load_digits()
full = TensorDataset(torch.tensor(d.images / 16.0, dtype=torch.float32).unsqueeze(1), torch.tensor(d.target))
train_set, test_set = random_split(full, [1497, 300])
train = DataLoader(train_set, batch_size=64, shuffle=True)
test = DataLoader(test_set, batch_size=300)

model = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                      nn.Flatten(), nn.Linear(384, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 10)).to(device)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [8], 0.1)

for epoch in range(10):
    for x, y in train:
        x, y = x.to(device), y.to(device)
        model.eval()                      # attack the deterministic network
        x_adv = pgd(model, x, y)
        model.train()
        logits_nat, logits_adv = model(x), model(x_adv)
        # TRADES
        kl = F.kl_div(F.log_softmax(logits_adv, 1), F.softmax(logits_nat, 1), reduction="batchmean")
        loss = F.cross_entropy(logits_nat, y) + 3.0 * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update_parameters(model)
    sched.step()
    if epoch % 3 == 0:
        c, r = robust_accuracy(ema, test, device)
        print(f"epoch {epoch}: clean {c:.3f} robust {r:.3f}")
