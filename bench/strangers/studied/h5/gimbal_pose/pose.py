"""Regress the orientation of a rigid marker from its projected points (6D rotation representation)."""
import torch
import torch.nn.functional as F
from torch import nn

MARKER = torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1, 1, 0.5], [-1, 0.3, 0.8]])


def axis_angle_to_matrix(v):
    theta = v.norm(dim=-1, keepdim=True).clamp(min=1e-8)
    k = v / theta
    K = torch.zeros(len(v), 3, 3)
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -k[:, 2], k[:, 1], -k[:, 0]
    K[:, 1, 0], K[:, 2, 0], K[:, 2, 1] = k[:, 2], -k[:, 1], k[:, 0]
    s, c = torch.sin(theta).unsqueeze(-1), torch.cos(theta).unsqueeze(-1)
    return torch.eye(3) + s * K + (1 - c) * (K @ K)


def six_d_to_matrix(a):
    x = F.normalize(a[:, :3], dim=-1)
    y = F.normalize(a[:, 3:] - (x * a[:, 3:]).sum(-1, keepdim=True) * x, dim=-1)
    return torch.stack([x, y, torch.linalg.cross(x, y)], dim=-1)


def geodesic(R1, R2):
    """Angle of the rotation between R1 and R2."""
    trace = torch.einsum("bij,bij->b", R1, R2)
    return torch.acos(((trace - 1) / 2).clamp(-1.0, 1.0))


class PoseNet(nn.Module):
    def __init__(self, n_points=5, width=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * n_points, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.head = nn.Linear(width, 6)
        nn.init.zeros_(self.head.weight)
        self.head.bias.data = torch.tensor([1.0, 0, 0, 0, 1.0, 0])  # start at the neutral pose

    def forward(self, points):
        return six_d_to_matrix(self.head(self.net(points.flatten(1))))


def sample(n, gen):
    v = 0.7 * torch.randn(n, 3, generator=gen)
    v[torch.rand(n, generator=gen) < 0.2] = 0.0  # the gimbal often rests in its home position
    R = axis_angle_to_matrix(v)
    points = torch.einsum("bij,pj->bpi", R, MARKER)[..., :2]
    return points + 0.01 * torch.randn(points.shape, generator=gen), R


def main():
    gen = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    net = PoseNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    test_points, test_R = sample(500, gen)
    for step in range(401):
        points, R = sample(64, gen)
        loss = geodesic(net(points), R).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            with torch.no_grad():
                err = torch.rad2deg(geodesic(net(test_points), test_R)).mean()
            print(f"step {step:4d}  loss {loss.item():.4f}  test error {err.item():.2f} deg")


if __name__ == "__main__":
    main()
