"""Source sensors are labelled, target sensors (drifted) are not."""
import math

import torch
import torch.nn.functional as F

from layers import DANN


def sensors(n, drift, g, classes=4, dim=10):
    centres = 2 * torch.randn(classes, dim, generator=torch.Generator().manual_seed(5))
    y = torch.randint(classes, (n,), generator=g)
    x = centres[y] + torch.randn(n, dim, generator=g)
    return x + drift * torch.linspace(-1, 1, dim), y


def main(steps=300, batch=64):
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(6)
    xs, ys = sensors(1500, 0.0, g)
    xt, _ = sensors(1500, 2.0, g)
    x_test, y_test = sensors(500, 2.0, g)
    net = DANN(10, 4)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    is_target = torch.cat([torch.zeros(batch), torch.ones(batch)])
    for step in range(steps):
        net.train()
        net.reverse.strength = 0.3 * (2 / (1 + math.exp(-10 * step / steps)) - 1)
        i, j = torch.randint(len(xs), (batch,)), torch.randint(len(xt), (batch,))
        classes, domains = net(torch.cat([xs[i], xt[j]]))
        loss_class = F.cross_entropy(classes[:batch], ys[i])
        loss_domain = F.binary_cross_entropy_with_logits(domains, is_target)
        opt.zero_grad()
        (loss_class + loss_domain).backward()
        opt.step()
        if step % 60 == 59:
            net.eval()
            with torch.no_grad():
                acc = (net(x_test)[0].argmax(1) == y_test).float().mean().item()
            print(f"{step + 1} class {loss_class.item():.3f} domain {loss_domain.item():.3f} target acc {acc:.3f}")


if __name__ == "__main__":
    main()
