import numpy as np


def collect(n, seed):
    """Returns a list of telemetry records like the ones the message bus delivers."""
    r = np.random.default_rng(seed)
    records = []
    for _ in range(n):
        rec = {
            "vibration": r.gamma(2.0, 1.5), "temperature": r.normal(65, 8), "flow": r.normal(120, 15),
            "current": r.normal(11, 1.2), "age_days": r.uniform(0, 2000), "acoustic": r.normal(40, 5),
        }
        risk = (0.9 * (rec["vibration"] - 3) / 2 + 0.8 * (rec["temperature"] - 65) / 8
                - 0.7 * (rec["flow"] - 120) / 15 + 0.4 * (rec["age_days"] - 1000) / 580)
        rec["failed"] = int(risk + r.normal(0, 0.5) > 0)
        records.append(rec)
    return records
