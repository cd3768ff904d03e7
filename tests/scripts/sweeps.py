"""Hand-made reports of a sweep."""

from typing import Any


def report(seed: int, score: float, bandwidth: Any = 1.75, **changes: Any) -> dict[str, Any]:
    """A report of C-Mixup on Airfoil, as published; of options it has a bandwidth only."""
    options = {} if bandwidth == 1.75 else {"method.bandwidth": bandwidth}
    made = {
        "experiment": "figure_bandwidth", "dataset": "airfoil", "model": "fcn3", "method": "cmixup", "preset": "paper",
        "options": options, "seed": seed, "selection": "rmse", "verdict": "local", "facts": {"effective_fraction": 0.2},
        "scores": {"val": {"rmse": score + 1, "r": 0.5}, "test": {"rmse": score, "r": 1 - score}},
    } | changes  # fmt: skip
    method = {"name": made["method"], "bandwidth": bandwidth, "pairing": {"name": "label", "_target_": "a.B"}}
    config = {"dataset": {"name": made["dataset"]}, "model": {"name": "fcn3"}, "method": method,
              "train": {"lr": made["options"].get("train.lr", 0.01)}, "preset": made["preset"]}  # fmt: skip
    return {"config": config, "run": f"{made['experiment']}/{made['method']}/{bandwidth}/seed={seed}", **made}
