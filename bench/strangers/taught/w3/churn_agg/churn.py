"""Weekly churn model. Input: event log (parquet export) + account table from the CRM."""
import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVENTS = "exports/events.parquet"      # columns: account_id, ts, kind, minutes
ACCOUNTS = "exports/accounts.csv"      # columns: created_at, account_id, plan, churned (newest account first)
CUTOFF = pd.Timestamp("2024-03-01")


def build_features(events: pd.DataFrame, accounts: pd.DataFrame) -> pd.DataFrame:
    ev = events[(events.ts < CUTOFF) & events.account_id.isin(accounts.account_id)].copy()
    ev["days_ago"] = (CUTOFF - ev.ts).dt.days
    agg = ev.groupby("account_id").agg(
        n_events=("kind", "size"),
        n_kinds=("kind", "nunique"),
        minutes=("minutes", "sum"),
        minutes_p90=("minutes", lambda s: s.quantile(0.9)),
        last_seen=("days_ago", "min"),
        active_days=("days_ago", "nunique"),
    )
    recent = ev[ev.days_ago <= 14].groupby("account_id").size().rename("n_recent")
    agg = agg.join(recent).fillna({"n_recent": 0})
    agg["recent_share"] = agg.n_recent / agg.n_events
    return agg


def load():
    events = pd.read_parquet(EVENTS)
    accounts = pd.read_csv(ACCOUNTS, parse_dates=["created_at"])
    accounts = accounts[accounts.created_at < CUTOFF - pd.Timedelta(days=60)]
    accounts = accounts[accounts.account_id.isin(events.loc[events.ts < CUTOFF, "account_id"])]
    feats = build_features(events, accounts)
    assert len(feats) == len(accounts)
    x = np.log1p(feats.to_numpy(dtype=np.float32))
    y = accounts["churned"].to_numpy(dtype=np.float32)
    return x, y


def main():
    torch.manual_seed(17)
    x, y = load()
    rng = np.random.default_rng(17)
    order = rng.permutation(len(x))
    cut = int(0.8 * len(x))
    tr, va = order[:cut], order[cut:]
    mu, sd = x[tr].mean(0), x[tr].std(0) + 1e-6
    x = torch.from_numpy((x - mu) / sd)
    y = torch.from_numpy(y)

    train = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=512, shuffle=True)
    net = nn.Sequential(nn.Linear(x.shape[1], 64), nn.SiLU(), nn.Dropout(0.1),
                        nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    pos_weight = (1 - y[tr]).sum() / y[tr].sum()
    lossf = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)

    for epoch in range(30):
        net.train()
        tot = 0.0
        for xb, yb in train:
            opt.zero_grad()
            loss = lossf(net(xb).squeeze(-1), yb)
            loss.backward()
            opt.step()
            tot += loss.item() * len(xb)
        net.eval()
        with torch.no_grad():
            score = net(x[va]).squeeze(-1).numpy()
        print(f"{epoch:02d} loss {tot / len(tr):.4f} val auc {roc_auc_score(y[va].numpy(), score):.4f}")
    torch.save({"state": net.state_dict(), "mu": mu, "sd": sd}, "churn_net.pt")


if __name__ == "__main__":
    main()
