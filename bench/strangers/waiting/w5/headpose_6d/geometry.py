import torch
import torch.nn.functional as F


def sixd_to_matrix(x):
    """Zhou et al. 2019, continuous 6D representation -> rotation matrix."""
    a1, a2 = x[..., :3], x[..., 3:]
    b1 = F.normalize(a1, dim=-1)
    b2 = a2 - (b1 * a2).sum(-1, keepdim=True) * b1
    b2 = F.normalize(b2, dim=-1)
    b3 = torch.cross(b1, b2, dim=-1)
    return torch.stack((b1, b2, b3), dim=-2)


def euler_to_matrix(yaw, pitch, roll):
    cy, sy = yaw.cos(), yaw.sin()
    cp, sp = pitch.cos(), pitch.sin()
    cr, sr = roll.cos(), roll.sin()
    one, zero = torch.ones_like(yaw), torch.zeros_like(yaw)
    rz = torch.stack([cr, -sr, zero, sr, cr, zero, zero, zero, one], -1).view(-1, 3, 3)
    ry = torch.stack([cy, zero, sy, zero, one, zero, -sy, zero, cy], -1).view(-1, 3, 3)
    rx = torch.stack([one, zero, zero, zero, cp, -sp, zero, sp, cp], -1).view(-1, 3, 3)
    return rz @ ry @ rx


def geodesic_distance(r1, r2):
    """Angle in radians of the relative rotation, one value per sample."""
    m = torch.bmm(r1, r2.transpose(1, 2))
    cos = (m.diagonal(dim1=1, dim2=2).sum(-1) - 1) / 2
    return torch.acos(cos)
