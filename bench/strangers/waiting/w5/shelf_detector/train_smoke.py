import torch
import torch.nn.functional as F

from detector import ShelfDetector, make_anchors

SIZE, N_CLASSES = 64, 3
torch.manual_seed(0)
anchors = make_anchors(SIZE)


def sample(n):
    imgs = torch.rand(n, 3, SIZE, SIZE) * 0.3
    labels = torch.randint(N_CLASSES, (n,))
    wh = torch.randint(14, 40, (n,)).float()
    cx = wh / 2 + torch.rand(n) * (SIZE - wh)
    cy = wh / 2 + torch.rand(n) * (SIZE - wh)
    for i in range(n):
        x0, y0, w = int(cx[i] - wh[i] / 2), int(cy[i] - wh[i] / 2), int(wh[i])
        imgs[i, labels[i], y0:y0 + w, x0:x0 + w] += 0.6
    return imgs, labels, torch.stack([cx, cy, wh, wh], 1)


def iou(a, b):
    a0, a1 = a[:, None, :2] - a[:, None, 2:] / 2, a[:, None, :2] + a[:, None, 2:] / 2
    b0, b1 = b[None, :, :2] - b[None, :, 2:] / 2, b[None, :, :2] + b[None, :, 2:] / 2
    inter = (torch.minimum(a1, b1) - torch.maximum(a0, b0)).clamp(min=0).prod(-1)
    return inter / (a[:, None, 2:].prod(-1) + b[None, :, 2:].prod(-1) - inter)


def assign(gt):
    ov = iou(gt, anchors)
    pos = ov > 0.45
    pos[torch.arange(len(gt)), ov.argmax(1)] = True
    return pos


def encode(gt):
    d = (gt[:, None, :2] - anchors[None, :, :2]) / anchors[None, :, 2:]
    s = torch.log(gt[:, None, 2:] / anchors[None, :, 2:])
    return torch.cat([d, s], -1)


def main():
    net = ShelfDetector(N_CLASSES)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    for step in range(60):
        img, lab, gt = sample(16)
        score, off = net(img)
        pos = assign(gt)
        target = torch.where(pos, lab[:, None] + 1, torch.zeros_like(lab)[:, None])
        ce = F.cross_entropy(score.transpose(1, 2), target, reduction="none")
        # hard negatives 3:1
        neg = ce.detach().masked_fill(pos, 0).flatten()
        k = min(3 * int(pos.sum()), neg.numel())
        keep = pos.flatten().clone()
        keep[neg.topk(k).indices] = True
        loss_c = ce.flatten()[keep].sum() / pos.sum()
        loss_b = F.smooth_l1_loss(off[pos], encode(gt)[pos])
        loss = loss_c + loss_b
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"{step:4d} cls {loss_c.item():.3f} box {loss_b.item():.3f}")


if __name__ == "__main__":
    main()
