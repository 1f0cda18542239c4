import random

PRODUCTS = "printer router laptop monitor phone scanner".split()
ISSUES = {
    "does not start": "check the power cable and press reset",
    "makes a noise": "clean the fan and call service",
    "shows error nine": "update the firmware then restart",
    "lost the connection": "move closer and renew the address",
}


def sample(n, seed=0):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        p, (issue, fix) = rng.choice(PRODUCTS), rng.choice(list(ISSUES.items()))
        polite = rng.choice(["hello ,", "please help ,", "hi team ,", ""])
        rows.append({"prompt": f"user : {polite} my {p} {issue} . agent :", "answer": f"for the {p} {fix} <eos>"})
    return rows
