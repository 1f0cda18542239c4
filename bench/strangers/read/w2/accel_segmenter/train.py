import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def blobs(n, seed, size=24):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(float(size)), torch.arange(float(size)), indexing="ij")
    c = 6 + 12 * torch.rand(2, n, 1, 1, generator=g)
    r = 3 + 3 * torch.rand(n, 1, 1, generator=g)
    mask = (((yy - c[0]) ** 2 + (xx - c[1]) ** 2).sqrt() < r).long()
    image = mask.float() + 0.5 * torch.randn(n, size, size, generator=g)
    return TensorDataset(image.unsqueeze(1), mask)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=2, dilation=2), nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=4, dilation=4), nn.ReLU(),
        nn.Conv2d(12, 2, 1),
    )


def main():
    set_seed(9)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    train = DataLoader(blobs(180, 1), batch_size=10, shuffle=True)
    val = DataLoader(blobs(50, 2), batch_size=16)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    epochs = 6
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=epochs * len(train) // 3)
    model, optimizer, train, val, schedule = accelerator.prepare(model, optimizer, train, val, schedule)

    for epoch in range(epochs):
        model.train()
        for image, mask in train:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(image), mask)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()

        model.eval()
        inter = union = 0
        for image, mask in val:
            with torch.inference_mode():
                pred = model(image).argmax(1)
            pred, mask = accelerator.gather_for_metrics((pred, mask))
            inter += ((pred == 1) & (mask == 1)).sum().item()
            union += ((pred == 1) | (mask == 1)).sum().item()
        accelerator.print(f"epoch {epoch} loss {loss.item():.4f} IoU {inter / union:.3f} lr {schedule.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    main()
