import argparse


def get_args():
    p = argparse.ArgumentParser("masked autoencoder pre-training")
    p.add_argument("--batch_size", default=64, type=int, help="per device")
    p.add_argument("--accum_iter", default=1, type=int)
    p.add_argument("--epochs", default=6, type=int)
    p.add_argument("--warmup_epochs", default=1, type=int)
    p.add_argument("--mask_ratio", default=0.6, type=float)
    p.add_argument("--lr", default=None, type=float, help="absolute lr")
    p.add_argument("--blr", default=1.5e-2, type=float,
                   help="base lr: absolute_lr = base_lr * total_batch_size / 256")
    p.add_argument("--min_lr", default=0.0, type=float)
    p.add_argument("--weight_decay", default=0.05, type=float)
    p.add_argument("--seed", default=0, type=int)
    p.add_argument("--world_size", default=1, type=int)
    return p.parse_args()
