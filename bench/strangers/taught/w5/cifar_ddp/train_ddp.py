# torchrun --nproc_per_node=4 train_ddp.py
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision
import torchvision.transforms as T
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

EPOCHS = 100
BATCH = 128


def setup():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    return local_rank


def get_data():
    mean, std = (0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)
    aug = T.Compose([T.RandomCrop(32, 4), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(mean, std)])
    plain = T.Compose([T.ToTensor(), T.Normalize(mean, std)])
    train = torchvision.datasets.CIFAR10("./data", train=True, transform=aug)
    test = torchvision.datasets.CIFAR10("./data", train=False, transform=plain)
    train_loader = DataLoader(train, batch_size=BATCH, shuffle=True, num_workers=4, pin_memory=True, drop_last=True)
    test_loader = DataLoader(test, batch_size=512, shuffle=False, num_workers=4, pin_memory=True)
    return train_loader, test_loader


def accuracy(model, loader, device):
    model.eval()
    good = total = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            good += (model(x).argmax(1) == y).sum().item()
            total += y.numel()
    return good / total


def main():
    local_rank = setup()
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    device = torch.device("cuda", local_rank)

    train_loader, test_loader = get_data()
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    net.maxpool = nn.Identity()
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net).to(device)
    model = DDP(net, device_ids=[local_rank])

    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * world, momentum=0.9, weight_decay=5e-4, nesterov=True)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
    cos = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS - 5)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cos], [5])

    for epoch in range(EPOCHS):
        model.train()
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = criterion(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        scheduler.step()
        avg = loss.detach().clone()
        dist.all_reduce(avg)
        # batch norm in eval mode needs no communication; the whole test set on every rank
        acc = accuracy(model.module, test_loader, device)
        if rank == 0:
            print(f"epoch {epoch} loss {avg.item() / world:.4f} test acc {acc:.4f}", flush=True)
            torch.save(net.state_dict(), "resnet18_cifar.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
