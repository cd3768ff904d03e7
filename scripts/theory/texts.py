"""What results/theory.md says of the theorems and of what was simulated; no result stands here."""

from __future__ import annotations

from dataclasses import dataclass

from scripts.theory.numbers import BASE, Simulation
from scripts.theory.simulations import CLUSTERS, COPIES, NONZERO, X_NOISE, Y_NOISE, Z_STD, Theorem2, Theorem3


@dataclass(frozen=True)
class Statement:
    """A section's words: its title, what the theorem says and needs, and what is simulated."""

    title: str
    says: str
    simulated: str


def names_of(theorem: int) -> dict[str, str]:
    """Return methods that are called otherwise in a theorem."""
    named = {2: {"mixup": "MetaMix"}, 3: {"erm": "ERM, both domains"}}
    return named.get(theorem, {})


def _of(simulation: Simulation) -> str:
    """Return the numbers of a simulation in words."""
    if isinstance(simulation, Theorem3):
        p1 = simulation.invariant
        return (
            f"n = {simulation.n} rows a domain, p1 = {p1}, p2 = {simulation.p - p1}, z and a standard normal, theta of "
            f"length 1, all noise of standard deviation {simulation.noise:g}, lambda = 1/2, ridge penalty "
            f"{simulation.penalty:g}, bandwidth {simulation.bandwidth:.2g} of the median distance of a label from the "
            f"nearest label that is not its partner's; a is {simulation.scale:g} times as large in the test domain, "
            f"where the error is computed in closed form. ‖theta_hat - theta‖² and the pairing (rows that get their "
            f"true partner) are measured, too. Over p, p1 stays a quarter of it"
        )
    rows = f"N = {simulation.n}, p = {simulation.p}, label bandwidth {simulation.bandwidth:g}"
    if isinstance(simulation, Theorem2):
        half, new = simulation.support, simulation.new_support
        rows = (
            f"{simulation.n // (2 * half)} tasks of {half} support and {half} query rows (N counts all of them), "
            f"p = {simulation.p}, label bandwidth {simulation.bandwidth:g}; {simulation.new_tasks} new tasks a seed of "
            f"{new} and {new} rows"
        )
    return (
        f"{rows}; z from {CLUSTERS} Gaussians around theta, 2 theta, ... with standard deviation {Z_STD:g}, theta with "
        f"{NONZERO} equal entries and zeros; standard deviation {X_NOISE:g} of xi and {Y_NOISE:g} of epsilon; lambda ~ "
        f"Beta(2, 2), {COPIES} mixed copies of each row; Nadaraya-Watson of width {simulation.width:g}"
    )


def _joined(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


INTRODUCTION = _joined(
    """The C-Mixup paper (arXiv 2210.05775, section 4) proves that C-Mixup has a smaller error than mixup and than
    mixing by feature distance in three models, and simulates none. Here each model is simulated with finite N and p:
    `make reproduce-theory`, {n} seeds, every number in [theory.csv](theory.csv). Methods of a seed share data, lambda
    and the random numbers by which partners are chosen, so differences are paired; intervals are 95 % t intervals
    over seeds. An ordering **holds** where all three intervals (C-Mixup minus mixup, minus both feature kernels) lie
    below 0, **does not hold** where one lies above, and is **open** otherwise. Feature kernels are
    exp(-d / (2 f s_d)), d the squared distance of features and s_d its standard deviation."""
)
STATEMENTS = {
    1: Statement(
        "Theorem 1: in distribution",
        _joined(
            """Model: y = g(theta' z) + epsilon, and x = z + xi is observed. theta is sparse, p = o(N), g is smooth with
            first and second derivative between positive constants. theta is estimated by least squares on the mixed
            rows, then g by a kernel estimator on them. The theorem: there are a distribution of x and a kernel for
            which, once N is large enough, MSE(C-Mixup) < min(MSE(feature), MSE(mixup)) with probability 1 - o(1)."""
        ),
        f"Simulated: g(t) = exp(t / 2), {_of(BASE[1])}. Partners are other rows.",
    ),
    2: Statement(
        "Theorem 2: tasks",
        _joined(
            """Model: that of Theorem 1 for every task, with a link g_m of its own and one theta. theta is estimated
            from the mixed rows of all tasks, the link of a new task from its own. Under the same conditions, in
            every task, the error on a new task has the same ordering, with MetaMix (query rows mixed with support rows
            of their task) in place of mixup."""
        ),
        f"Simulated: g_m(t) = a exp(b t) with a ~ U(0.5, 1.5) and b ~ U(0.3, 0.6), {_of(BASE[2])}.",
    ),
    3: Statement(
        "Theorem 3: covariate shift",
        _joined(
            """Model: x = (z; a), y = theta' x + epsilon, where theta is 0 on a. Each row has a partner in a second
            domain, z' = z + noise and a' = -a + noise. Rows of the first domain are mixed with rows of the second, and
            theta is estimated by ridge regression. The theorem needs noise that is small against the distance between
            labels, a penalty in a range that grows with n, and a label bandwidth of at most a constant times
            l / sqrt(log(n² / p1)), where l is the least |y_i - y'_j| over i ≠ j. Then the error in a shifted domain
            has the same ordering with probability 1 - o(1): the true partner is chosen, mixing cancels a, and ridge
            spends nothing on it."""
        ),
        f"Simulated: {_of(BASE[3])}. Gap: the least distance of a label from another row's in the other domain, over "
        "the largest from its partner's.",
    ),
}
CANNOT = """\
- The theorems are asymptotic, and say that there are a distribution and a kernel. A simulation shows an ordering in one
  model at finite N and p: it does not prove the theorem and, where the ordering does not hold, does not refute it.
- Models, noise and widths were chosen so that the ordering can be seen (curved links, clusters far apart). How real
  data lie is not said.
- The constants in the theorems' conditions are not known, so that no p / N and no bandwidth can be called inside or
  outside of them; what is shown is where the order changes.
- ERM stands in no theorem. That C-Mixup beats mixup says nothing of whether it beats training without mixing.
- Estimators are those of the theorems (least squares, Nadaraya-Watson, ridge), not networks."""
