"""Layers over time that also run as stacks, a convolution and a gated recurrent unit, fast on a CPU.

PyTorch's CPU code leaves back-propagation through time to autograd, a dozen nodes a step that allocate as they go. Here
both directions are loops over buffers that are written in place. Every step lies in memory as (features, batch): gates
are contiguous blocks then, and the small products take half the time of (batch, features).
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from cmixup.errors import InputError

aten = torch.ops.aten
hardshrink, sigmoid_backward, tanh_backward = aten.hardshrink, aten.sigmoid_backward, aten.tanh_backward
CHUNK = 8  # steps whose gradients are taken together, so that they stay in the cache


class StackConv1d(nn.Conv1d):
    """`nn.Conv1d(channels, width, kernel)` without padding, that also takes weights with a leading axis of E models."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `(B, width, T - kernel + 1)` for inputs `(B, channels, T)`; each with a leading axis E for a stack.

        The result lies in memory as (time, width, batch), the layout that `StackGRU` reads.
        """
        assert self.bias is not None
        is_single, tensors = self.weight.ndim == 3, (x, self.weight, self.bias)
        x, weight, bias = (part[None] for part in tensors) if is_single else tensors
        in_time = x.permute(0, 3, 2, 1).contiguous()
        windows = in_time.unfold(1, weight.shape[-1], 1).movedim(-1, 2).flatten(2, 3)  # (E, T, kernel C, B), no copy
        out = _Project.apply(windows, weight.mT.flatten(2), bias).permute(0, 3, 2, 1)  # type: ignore[no-untyped-call]
        return out.squeeze(0) if is_single else out


class StackGRU(nn.GRU):
    """One layer of `nn.GRU(width, hidden)` that also takes weights with a leading axis of E models.

    Its equations are those of `nn.GRU` (Cho et al. 2014, with the reset gate after the product, as cuDNN has it):

        r = sigmoid(W_r x + b_r + U_r h + c_r)      z = sigmoid(W_z x + b_z + U_z h + c_z)
        n = tanh(W_n x + b_n + r (U_n h + c_n))     h' = (1 - z) n + z h

    A gradient that flows back through many steps fades. Elements below 1e8 times the smallest normal number (1e-30 in
    float32) become zero, since a CPU takes many times longer for products of subnormal numbers. Second derivatives are
    refused, but for a single model on CUDA, which runs cuDNN.
    """

    def flatten_parameters(self) -> None:
        """Put the weights into one block for cuDNN, which runs single models only."""
        if self.weight_ih_l0.ndim == 2:
            super().flatten_parameters()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Return all states `(T, B, H)` and the last, `(B, H)`, from zero on, for inputs `(T, B, C)`.

        Each has a leading axis E for a stack. Inputs that lie in memory as `(T, C, B)` are not copied.
        """
        weights: tuple[Any, ...] = self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0
        if x.ndim == 4:
            states, last = _GRU.apply(x.mT, *weights)  # type: ignore[no-untyped-call]
            return states.mT, last.mT
        if x.is_cuda:
            states, last = super().forward(x)
            return states, last[0]
        states, last = _GRU.apply(x.mT[None], *(weight[None] for weight in weights))  # type: ignore[no-untyped-call]
        return states.squeeze(0).mT, last.squeeze(0).mT


class _Project(torch.autograd.Function):
    """`W x + b` at every step: `(E, T, O, B)` of inputs `(E, T, C, B)`, weights `(E, O, C)` and biases `(E, O)`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _project(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        _refuse_second_derivatives()
        x, weight = ctx.saved_tensors
        d_weight, d_bias = torch.zeros_like(weight), d_out.new_zeros(d_out.shape[0], d_out.shape[2])
        d_x = torch.empty_like(x, memory_format=torch.contiguous_format) if ctx.needs_input_grad[0] else None
        for e, d_sums in enumerate(d_out.contiguous()):
            _add_weight_gradient(d_weight[e], d_bias[e], d_sums, x[e])
            if d_x is not None:
                _multiply(weight[e].mT, d_sums, d_x[e])
        return d_x, d_weight, d_bias


class _GRU(torch.autograd.Function):
    """States `(E, T, H, B)` and the last, `(E, H, B)`, of inputs `(E, T, C, B)`.

    Weights are `(E, 3H, C)` and `(E, 3H, H)`, biases `(E, 3H)`, in the order r, z, n.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        weight, kernel, bias, kernel_bias = weights
        models, steps, _, batch = x.shape
        hidden = kernel.shape[-1]
        rz, n = slice(2 * hidden), slice(2 * hidden, None)  # rows of r and z, and of n
        x = x.contiguous()
        # The biases c_r and c_z can be added to those of the input; c_n is multiplied by r.
        summed = bias.clone()
        summed[:, rz] += kernel_bias[:, rz]
        gates = _project(x, weight, summed)
        inner, states = (x.new_empty(models, steps, hidden, batch) for _ in range(2))  # inner is U_n h + c_n
        product = x.new_empty(models, 3 * hidden, batch)
        rz_product, n_product, inner_bias = product[:, rz], product[:, n], kernel_bias[:, n, None]
        state = x.new_zeros(models, hidden, batch)
        r, z, _ = torch.split(gates, hidden, dim=2)
        parts = (r, z, gates[:, :, rz], gates[:, :, n], inner, states)
        for r_t, z_t, rz_t, n_t, inner_t, state_t in zip(*(part.unbind(1) for part in parts), strict=True):
            torch.bmm(kernel, state, out=product)
            rz_t.add_(rz_product).sigmoid_()
            torch.add(n_product, inner_bias, out=inner_t)
            n_t.addcmul_(r_t, inner_t).tanh_()
            state = torch.lerp(n_t, state, z_t, out=state_t)
        ctx.save_for_backward(x, weight, kernel, gates, inner, states)
        ctx.set_materialize_grads(False)
        return states, states[:, -1].clone()

    @staticmethod
    def backward(ctx: Any, d_states: Tensor | None, d_last: Tensor | None) -> tuple[Tensor | None, ...]:
        _refuse_second_derivatives()
        x, weight, kernel, gates, inner, states = ctx.saved_tensors
        models, steps, hidden, batch = states.shape
        d_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        d_weight, d_kernel = torch.zeros_like(weight), torch.zeros_like(kernel)
        d_bias, d_kernel_bias = (x.new_zeros(models, 3 * hidden) for _ in range(2))
        d_state = (
            x.new_zeros(models, hidden, batch)
            if d_last is None
            else d_last.clone(memory_format=torch.contiguous_format)
        )
        smallest, transposed = torch.finfo(x.dtype).tiny * 1e8, kernel.mT
        buffers = [x.new_empty(models, min(CHUNK, steps), width * hidden, batch) for width in (3, 3, 1, 1, 1, 1)]
        for start in reversed(range(0, steps, CHUNK)):
            stop = min(start + CHUNK, steps)
            d_gates, factors, d_hidden, previous, by_new, scratch = (buffer[:, : stop - start] for buffer in buffers)
            previous[:, 1:] = states[:, start : stop - 1]
            previous[:, 0] = states[:, start - 1] if start else 0
            # The gradient by a gate's sum is that by h' times a factor, and all factors are known before the loop.
            r, z, n = gates[:, start:stop].split(hidden, dim=2)
            by_r, by_z, by_inner = factors.split(hidden, dim=2)
            tanh_backward(torch.sub(1, z, out=scratch), n, grad_input=by_new)
            torch.mul(by_new, r, out=by_inner)
            sigmoid_backward(torch.sub(previous, n, out=scratch), z, grad_input=by_z)
            sigmoid_backward(torch.mul(by_new, inner[:, start:stop], out=scratch), r, grad_input=by_r)
            by_gate, in_gates = (t.unflatten(2, (3, hidden)).unbind(1) for t in (factors, d_gates))
            z_steps, d_steps, d_gate_steps = z.unbind(1), d_hidden.unbind(1), d_gates.unbind(1)
            for t in reversed(range(stop - start)):
                d_t = d_steps[t]
                hardshrink(d_state, smallest, out=d_t)
                if d_states is not None:
                    d_t += d_states[:, start + t]
                torch.mul(by_gate[t], d_t.unsqueeze(1), out=in_gates[t])
                torch.mul(d_t, z_steps[t], out=d_state).baddbmm_(transposed, d_gate_steps[t])
            for e, d_sums in enumerate(d_gates):
                _add_weight_gradient(d_kernel[e], d_kernel_bias[e], d_sums, previous[e])
                torch.mul(d_hidden[e], by_new[e], out=d_sums[:, 2 * hidden :])  # now by W_n x + b_n
                _add_weight_gradient(d_weight[e], d_bias[e], d_sums, x[e, start:stop])
                if d_x is not None:
                    _multiply(weight[e].mT, d_sums, d_x[e, start:stop])
        return d_x, d_weight, d_kernel, d_bias, d_kernel_bias


def _project(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return what `_Project` does. A batched product over all models at once would copy the weights for every step."""
    models, steps, _, batch = x.shape
    out = x.new_empty(models, steps, weight.shape[1], batch)
    for e in range(models):
        torch.baddbmm(bias[e, None, :, None], weight[e].expand(steps, -1, -1), x[e], out=out[e])
    return out


def _multiply(weight: Tensor, x: Tensor, out: Tensor) -> None:
    """Write `W x` at every step to `out: (T, O, B)`."""
    torch.bmm(weight.expand(len(x), -1, -1), x, out=out)


def _add_weight_gradient(d_weight: Tensor, d_bias: Tensor, d_out: Tensor, x: Tensor) -> None:
    """Add the gradients by one model's weight and bias, for `d_out: (T, O, B)` and `x: (T, C, B)`."""
    d_weight += torch.bmm(d_out, x.mT).sum(dim=0)
    with _one_thread():  # MKL's product with a vector rounds otherwise where two share it
        d_bias += torch.matmul(d_out, d_out.new_ones(d_out.shape[-1])).sum(dim=0)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread meanwhile, so that the digits do not depend on how many there are."""
    previous = torch.get_num_threads()
    if previous == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(previous)


def _refuse_second_derivatives() -> None:
    """Raise `InputError` where a gradient shall be differentiated again; it would pass for a constant."""
    if torch.is_grad_enabled():
        raise InputError("create_graph must be False for LSTNet's layers, which have no second derivatives, got True")
