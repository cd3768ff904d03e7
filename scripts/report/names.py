"""Display names, as the paper prints them; the only place that maps them to our spellings."""

from __future__ import annotations

DATASETS = {
    "airfoil": "Airfoil",
    "no2": "NO2",
    "exchange_rate": "Exchange-Rate",
    "electricity": "Electricity",
    "echo": "Echo",
    "rcf_mnist": "RCF-MNIST",
    "poverty_map": "PovertyMap",
    "crime": "Crime",
    "skillcraft": "SkillCraft",
    "dti": "DTI",
    "shapenet1d": "ShapeNet1D",
    "pascal1d": "PASCAL3D",
    "diabetes": "Diabetes",
    "electricity_fragment": "Electricity fragment",
    "dti_davis": "Davis",
    "dti_kiba": "KIBA",
    "pascal1d_rendered": "PASCAL3D, our rendering",
    "shapenet1d_random": "Random shapes, our rendering",
}
METHODS = {
    "erm": "ERM",
    "mixup": "mixup",
    "manifold_mixup": "Manifold Mixup",
    "k_mixup": "k-Mixup",
    "local_mixup": "Local Mixup",
    "mixrl": "MixRL",
    "cmixup": "C-Mixup",
    "cmixup_batch": "C-Mixup-batch",
    "cutmix": "CutMix",
    "puzzlemix": "PuzzleMix",
    "automix": "AutoMix",
    "irm": "IRM",
    "ib_irm": "IB-IRM",
    "vrex": "V-REx",
    "coral": "CORAL",
    "drnn": "DRNN",
    "group_dro": "GroupDRO",
    "fish": "Fish",
    "maml": "MAML",
    "mr_maml": "MR-MAML",
    "meta_aug": "Meta-Aug",
    "metamix": "MetaMix",
    "k_metamix": "k-MetaMix",
    "local_metamix": "Local MetaMix",
    "cmixup_meta": "C-Mixup",
}
METRICS = {
    "rmse": "RMSE", "mape": "MAPE(%)", "r": "R", "mse": "MSE", "worst_rmse": "worst RMSE", "worst_r": "worst R",
    "mean_rmse": "mean RMSE over domains", "mean_r": "mean R over domains",
    "mse_ci95": "95 % interval over tasks ±", "mse_20_steps": "MSE, 20 steps",
    "mse_ci95_20_steps": "95 % interval over tasks ±, 20 steps",
}  # fmt: skip


def display(names: dict[str, str], name: str) -> str:
    """Return how the paper prints `name`, or `name` itself if the paper has no such thing."""
    return names.get(name, name)
