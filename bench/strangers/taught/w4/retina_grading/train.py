import time

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import cohen_kappa_score
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms
from tqdm import tqdm

DATA = "/mnt/ssd/retina"
EPOCHS, BATCH = 30, 64
device = torch.device("cuda:0")
torch.backends.cudnn.benchmark = True
torch.manual_seed(17)

norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
train_tf = transforms.Compose([transforms.RandomResizedCrop(224, (0.7, 1.0)), transforms.RandomHorizontalFlip(),
                               transforms.RandomRotation(20), transforms.ToTensor(), norm])
val_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), norm])
train_set = datasets.ImageFolder(f"{DATA}/train", train_tf)
val_set = datasets.ImageFolder(f"{DATA}/val", val_tf)
train_loader = DataLoader(train_set, BATCH, shuffle=True, num_workers=8, pin_memory=True, drop_last=True, persistent_workers=True)
val_loader = DataLoader(val_set, 128, num_workers=8, pin_memory=True)

model = models.resnet18(weights=models.ResNet18_Weights.DEFAULT)
model.fc = nn.Linear(model.fc.in_features, len(train_set.classes))
model = model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)

for epoch in range(EPOCHS):
    model.train()
    losses, preds, targets = [], [], []
    start = time.time()
    bar = tqdm(train_loader, desc=f"epoch {epoch}")
    for images, labels in bar:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)

        outputs = model(images)
        loss = criterion(outputs, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        losses.append(loss.item())
        preds.extend(outputs.argmax(1).cpu().tolist())
        targets.extend(labels.cpu().tolist())
        grad_norms = {n: p.grad.norm().item() for n, p in model.named_parameters()}
        bar.set_postfix(loss=np.mean(losses[-20:]), kappa=cohen_kappa_score(targets[-1000:], preds[-1000:], weights="quadratic"),
                        max_grad=max(grad_norms.values()))
    scheduler.step()
    print(f"{len(train_set) / (time.time() - start):.0f} images/s")

    model.eval()
    vp, vt = [], []
    with torch.no_grad():
        for images, labels in val_loader:
            vp.append(model(images.to(device, non_blocking=True)).argmax(1).cpu())
            vt.append(labels)
    kappa = cohen_kappa_score(torch.cat(vt).numpy(), torch.cat(vp).numpy(), weights="quadratic")
    print(f"epoch {epoch} loss {np.mean(losses):.4f} val kappa {kappa:.4f}")
    torch.save(model.state_dict(), f"resnet18_{epoch:02d}.pt")
