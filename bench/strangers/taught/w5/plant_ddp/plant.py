import os

import pandas as pd
import timm
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from albumentations import Compose, HorizontalFlip, Normalize, RandomResizedCrop, Resize, VerticalFlip
from albumentations.pytorch import ToTensorV2
import cv2
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

ROOT = "/kaggle/input/plant-pathology-2020-fgvc7"
COLS = ["healthy", "multiple_diseases", "rust", "scab"]
SIZE, BS, EPOCHS, FOLD = 384, 24, 15, 0


class Leaves(Dataset):
    def __init__(self, df, tfm):
        self.ids = df.image_id.values
        self.y = df[COLS].values.argmax(1)
        self.tfm = tfm

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        im = cv2.cvtColor(cv2.imread(f"{ROOT}/images/{self.ids[i]}.jpg"), cv2.COLOR_BGR2RGB)
        return self.tfm(image=im)["image"], int(self.y[i])


def loaders(rank, world):
    df = pd.read_csv("folds.csv")
    tr = Leaves(df[df.fold != FOLD], Compose([RandomResizedCrop(size=(SIZE, SIZE), scale=(0.6, 1)), HorizontalFlip(p=.5),
                                              VerticalFlip(p=.5), Normalize(), ToTensorV2()]))
    va = Leaves(df[df.fold == FOLD], Compose([Resize(SIZE, SIZE), Normalize(), ToTensorV2()]))
    ts = DistributedSampler(tr, num_replicas=world, rank=rank, shuffle=True, seed=42)
    vs = DistributedSampler(va, num_replicas=world, rank=rank, shuffle=False)
    return (DataLoader(tr, BS, sampler=ts, num_workers=2, pin_memory=True, drop_last=True),
            DataLoader(va, BS * 2, sampler=vs, num_workers=2, pin_memory=True))


def worker(rank, world):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "12355")
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    torch.manual_seed(42 + rank)
    train_dl, val_dl = loaders(rank, world)

    model = timm.create_model("tf_efficientnet_b3_ns", pretrained=True, num_classes=len(COLS)).cuda()
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model), device_ids=[rank])
    opt = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 6e-4, epochs=EPOCHS, steps_per_epoch=len(train_dl))
    crit = nn.CrossEntropyLoss(label_smoothing=0.05)
    scaler = torch.cuda.amp.GradScaler()

    best = 0.0
    for epoch in range(EPOCHS):
        model.train()
        for x, y in train_dl:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            with torch.cuda.amp.autocast():
                loss = crit(model(x), y)
            opt.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            sched.step()

        model.eval()
        stat = torch.zeros(2, device="cuda")
        with torch.no_grad():
            for x, y in val_dl:
                p = model(x.cuda()).argmax(1).cpu()
                stat[0] += (p == y).sum()
                stat[1] += len(y)
        dist.all_reduce(stat)
        acc = (stat[0] / stat[1]).item()
        if rank == 0:
            print(f"epoch {epoch} acc {acc:.4f} lr {sched.get_last_lr()[0]:.2e}")
            if acc > best:
                torch.save(model.module.state_dict(), f"b3_fold{FOLD}.pth")
        best = max(best, acc)
    dist.destroy_process_group()


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n,), nprocs=n)
