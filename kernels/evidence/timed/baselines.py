"""What the vendor has for the same work: timed beside a kernel, on its inputs, by the same clock.

    baseline, notes = baselines.beside(linear.experiment, inputs, "bf16", clock, ours, budget=0.3)

A table by experiment (its key, or its file's name for all variants): a kernel file knows nothing of
it. Each entry makes {name: work} from the inputs of `run`, prepares what may be prepared outside the
time (views, outputs), and gives the result in the reference's form. FlashAttention and FlashInfer join
in where they can be imported.

`beside` times them. Before any is timed its result is held against ours, which was held against
float64, with the tolerance of the experiment: one that does something else is left out, with a note
that says by how much it differs. One that could be captured in no graph, and that Python takes longer
to launch than it took, is left out, too: its time may be Python's. The fastest of the others counts.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from book.say import say
from kernels.contract.experiment import Experiment
from kernels.evidence.poison import poisoned
from kernels.evidence.timed.checking import Differs, distance
from kernels.evidence.timed.clocks import Clock, Timing

Work = Callable[[], Any]
Works = dict[str, Work]
SIXTEEN = ("bf16", "fp16")
ATTENTION = "torch scaled_dot_product_attention"
# Its fast kernels, as a name has them and as torch's SDPBackend does
BACKENDS = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}


def of(experiment: Experiment, inputs: Mapping[str, Any], dtype: str) -> Works:
    """{name: work}: what does the same on these inputs; {} where nobody has it, or not in `dtype`."""
    make = _maker(experiment, dtype)
    return make(experiment, **inputs) if make else {}


def known(experiment: Experiment, dtype: str) -> bool:
    """Whether a vendor may have something in `dtype` for the same work."""
    return _maker(experiment, dtype) is not None


def _maker(experiment: Experiment, dtype: str) -> Callable[..., Works] | None:
    if experiment.key in WITHOUT or dtype not in (*SIXTEEN, "fp32"):
        return None
    return TABLE.get(experiment.key) or FAMILIES.get(experiment.name)


def beside(
    experiment: Experiment,
    inputs: Mapping[str, Any],
    dtype: str,
    clock: Clock,
    ours: Timing,
    budget: float,
    run: Work | None = None,
) -> tuple[dict[str, Any] | None, list[str]]:
    """The fastest of the vendor's kernels that give our result on these inputs; a note for each other one.

    ours: the time of our kernel, which was found right on these inputs. run: starts it; it is timed again
    after the vendors', as a card's clock falls while it works. What is written in place is
    written. Nothing that a vendor's kernel does is raised: it must not cost our own point.
    """
    notes: list[str] = []
    try:
        with poisoned():  # an output that is made here and never written holds no result of before
            works = of(experiment, inputs, dtype)
        errors = _right(experiment, inputs, dtype, works, notes) if works else {}
    except Exception as error:  # noqa: BLE001 - memory, most likely
        notes.append(say("No baseline could be made: {reason}", reason=_first_line(error)))
        return None, notes
    timings: dict[str, Timing] = {}
    for name in errors:
        try:
            timing = clock.time(works[name], budget)
        except Exception as error:  # noqa: BLE001
            notes.append(_not_timed(name, error))
            continue
        if _may_be_python_s(timing):
            notes.append(
                say(
                    "{name} is left out: no graph could hold it, and Python takes {launch:.1f} µs to launch "
                    "what took {seconds:.1f} µs: the time may be Python's.",
                    name=name,
                    launch=1e6 * (timing.launch_seconds or 0.0),
                    seconds=1e6 * timing.seconds,
                )
            )
            continue
        timings[name] = timing
    if not timings:
        return None, notes
    return {**_found(timings, errors, ours), **_again(run, clock, ours, budget, notes)}, notes


def _again(
    run: Work | None, clock: Clock, ours: Timing, budget: float, notes: list[str]
) -> dict[str, dict[str, float]]:
    """{"again": our own time after the vendors'}; a note where the card has changed meanwhile."""
    if run is None:
        return {}
    try:
        last = clock.time(run, budget)
    except Exception as error:  # noqa: BLE001 - a vendor's kernel may have broken what it needs
        notes.append(_not_timed(say("our own kernel, after the vendors'"), error))
        return {}
    if last.low > ours.high or last.high < ours.low:
        notes.append(
            say(
                "After the vendors' kernels ours took {last:.1f} µs, before them {first:.1f} µs: the card "
                "has changed meanwhile.",
                last=1e6 * last.seconds,
                first=1e6 * ours.seconds,
            )
        )
    return {"again": {"seconds": last.seconds, "low": last.low, "high": last.high}}


def _may_be_python_s(timing: Timing) -> bool:
    """Whether Python's own time may be in it: launched by Python, which takes longer than this took."""
    return timing.way == "eager" and (timing.launch_seconds or 0.0) > timing.seconds


def _found(timings: Mapping[str, Timing], errors: Mapping[str, float], ours: Timing) -> dict[str, Any]:
    """The baseline as a point keeps it: the fastest, the seconds of the others, and how those were timed."""
    best = min(timings, key=lambda name: timings[name].seconds)
    kept = {name: _as_record(timing) for name, timing in timings.items()}
    fastest = kept.pop(best)
    return {
        "name": best,
        **fastest,
        "share": timings[best].seconds / ours.seconds,
        "relative_error": errors[best],
        "others": {name: timing["seconds"] for name, timing in kept.items()},
        "timings": kept,
    }


def _as_record(timing: Timing) -> dict[str, Any]:
    """What tells how far to trust a baseline's time."""
    names = ("seconds", "low", "high", "runs", "way", "launch_seconds", "empty_seconds")
    return {**{name: getattr(timing, name) for name in names}, "notes": list(timing.notes)}


def _right(
    experiment: Experiment, inputs: Mapping[str, Any], dtype: str, works: Works, notes: list[str]
) -> dict[str, float]:
    """How far each work's result is from ours, of those that are near enough; `notes` gets the others."""
    ours, allowed = _Ours(experiment, inputs), experiment.tolerance(dtype)
    found: dict[str, float] = {}
    for name, work in works.items():
        try:
            error = ours.distance(work)
        except Differs as why:
            notes.append(say("{name} was not timed: {why}", name=name, why=str(why)))
        except Exception as failure:  # noqa: BLE001
            notes.append(_not_timed(name, failure))
        else:
            if error <= allowed:
                found[name] = error
                continue
            notes.append(
                say(
                    "{name} was not timed: its result is {error:.2e} of its norm away from ours in {dtype}, "
                    "and {allowed:.0e} is allowed.",
                    name=name,
                    error=error,
                    dtype=dtype,
                    allowed=allowed,
                )
            )
    return found


class _Ours:
    """Our result on these inputs, and what stood there before in all that is written in place."""

    def __init__(self, experiment: Experiment, inputs: Mapping[str, Any]) -> None:
        places = [name for name, tensor in experiment.tensors.items() if tensor.written and not tensor.out]
        self._before = [(inputs[name], inputs[name].clone()) for name in places]
        results = experiment.results(inputs)
        self._results = [x.clone() for x in results] if places else list(results)

    def distance(self, work: Work) -> float:
        """How far the result of `work` is from ours, as a share of ours. Raises Differs, or what it raises.

        Where the device has no room for both results, ours goes to the host's memory.
        """
        try:
            return self._distance(work)
        except torch.OutOfMemoryError:
            pass  # and out of this block, which holds the frames, and they their tensors
        self._results = [x.cpu() for x in self._results]
        self._before = [(place, was.cpu()) for place, was in self._before]
        return self._distance(work)

    def _distance(self, work: Work) -> float:
        for place, was in self._before:
            place.copy_(was)
        made = work()
        theirs = made if isinstance(made, tuple) else (made,)
        if len(theirs) != len(self._results):
            raise Differs(f"it gives {len(theirs)} results, and ours are {len(self._results)}.")
        return distance([theirs], [self._results])


def _not_timed(name: str, error: BaseException) -> str:
    return say(
        "{name} could not be timed beside it: {kind}: {first}",
        name=name,
        kind=type(error).__name__,
        first=_first_line(error),
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _copy(_: Experiment, x: torch.Tensor) -> Works:
    y = torch.empty_like(x)
    return {"torch copy_": lambda: y.copy_(x)}


def _triad(experiment: Experiment, a: torch.Tensor, b: torch.Tensor) -> Works:
    y = torch.empty_like(a)
    scale = inspect.signature(experiment.run).parameters["scale"].default  # what a run without one takes
    return {"torch.add": lambda: torch.add(a, b, alpha=scale, out=y)}


def _matmul(_: Experiment, x: torch.Tensor, w: torch.Tensor) -> Works:
    return {"torch.matmul": lambda: torch.matmul(x, w)}


def _linear(experiment: Experiment, x: torch.Tensor, w: torch.Tensor) -> Works:
    """Of w[k, n] and, as a checkpoint has it, of [n, k]: the libraries have other kernels for that."""
    works = _matmul(experiment, x, w)
    try:
        transposed = w.T.contiguous()
    except torch.OutOfMemoryError:  # a second copy of w; what needs none is still timed
        return works
    return {**works, "torch functional.linear": lambda: functional.linear(x, transposed)}


def _mlp(
    _: Experiment, x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
) -> Works:
    return {"torch.matmul, silu": lambda: (functional.silu(x @ w_gate) * (x @ w_up)) @ w_down}


def _append(_: Experiment, k, v, k_cache, v_cache, positions) -> Works:
    rows, places = torch.arange(len(k), device=k.device), positions.long()
    bits = {4: torch.int32, 2: torch.int16, 1: torch.uint8}[k.element_size()]  # only moved
    k, v, keys, values = (x.view(bits) for x in (k, v, k_cache, v_cache))

    def work() -> tuple[torch.Tensor, torch.Tensor]:
        keys[rows, :, places], values[rows, :, places] = k, v
        return k_cache, v_cache

    return {"torch index_put_": work}


def _flash(_: Experiment, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Works:
    """q[batch, length, heads, head_dim], causal."""
    across = [x.transpose(1, 2) for x in (q, k, v)]
    works = _each_way(ATTENTION, lambda: _attention(*across, is_causal=True).transpose(1, 2), q)
    if q.shape[2] != k.shape[2]:
        # Where flash-attention can't be had (a T4), torch's other fast kernel takes no shared KV heads.
        each = q.shape[2] // k.shape[2]
        same = [across[0], *(x.repeat_interleave(each, 1) for x in across[1:])]
        work = lambda: _attention(*same, is_causal=True).transpose(1, 2)  # noqa: E731
        works |= _each_way(f"{ATTENTION}, repeat_interleave", work, q)
    if flash := _if_there("flash_attn", "flash_attn_func", q):
        works["flash_attn"] = lambda: flash(q, k, v, causal=True)
    prefill = _if_there("flashinfer", "single_prefill_with_kv_cache", q)
    if prefill and len(q) == 1:
        works["flashinfer"] = lambda: prefill(q[0], k[0], v[0], causal=True)[None]
    return works


def _unfused(_: Experiment, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Works:
    """The same three steps by torch, each of which writes its matrix."""
    group, length, scale = q.shape[2] // k.shape[2], q.shape[1], q.shape[3] ** -0.5
    keys, values = (x.transpose(1, 2).repeat_interleave(group, 1) for x in (k, v))
    queries = q.transpose(1, 2)
    later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)

    def work() -> torch.Tensor:
        scores = (queries @ keys.mT).mul_(scale).masked_fill_(later, float("-inf"))
        return (scores.softmax(-1) @ values).transpose(1, 2)

    return {"torch.matmul, softmax": work}


def _decode(_: Experiment, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: Any = None) -> Works:
    """q[batch, heads, head_dim], one token a sequence."""
    one = q[:, :, None]
    works = _each_way(ATTENTION, lambda: _attention(one, k, v)[:, :, 0], q)
    if q.shape[1] != k.shape[1]:
        # The heads of a KV head in the place of its queries: each of torch's kernels takes that.
        rows_of = q.unflatten(1, (k.shape[1], -1))
        work = lambda: _attention(rows_of, k, v).flatten(1, 2)  # noqa: E731
        works |= _each_way(f"{ATTENTION}, unflatten", work, q)
    if flash := _if_there("flash_attn", "flash_attn_with_kvcache", q):
        rows, keys, values = q[:, None], k.transpose(1, 2), v.transpose(1, 2)
        works["flash_attn"] = lambda: flash(rows, keys, values)[:, 0]
    decode = _if_there("flashinfer", "single_decode_with_kv_cache", q)
    if decode and len(q) == 1:
        works["flashinfer"] = lambda: decode(q[0], k[0], v[0], kv_layout="HND")[None]
    return works


def _each_way(name: str, work: Work, like: torch.Tensor) -> Works:
    """`work` by each of torch's fast kernels of attention that takes it here, a name for each.

    Which one torch takes by itself changes with its version and the card. Where none of them takes it,
    or on a CPU, that one is all there is.
    """
    known = SDPBackend.__members__ if like.device.type == "cuda" else {}
    works = {f"{name}, {which}": _by(known[one], work) for which, one in BACKENDS.items() if one in known}
    return {which: one for which, one in works.items() if _runs(one)} or {name: work}


def _by(backend: SDPBackend, work: Work) -> Work:
    def run() -> Any:
        with sdpa_kernel(backend):
            return work()

    return run


def _runs(work: Work) -> bool:
    """Whether it runs; torch warns of each reason why it doesn't, and raises then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            work()
        except torch.OutOfMemoryError:
            return True  # no refusal: said when it is held against ours
        except RuntimeError:
            return False
    return True


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """torch's own, with query heads that share a KV head."""
    if q.shape[1] != k.shape[1]:
        options["enable_gqa"] = True
    return functional.scaled_dot_product_attention(q, k, v, **options)


def _if_there(package: str, name: str, like: torch.Tensor) -> Any:
    """A function of a package that is for CUDA only and need not be installed; or None."""
    if like.device.type != "cuda" or like.element_size() != 2:
        return None
    try:
        return getattr(importlib.import_module(package), name, None)
    except Exception:  # noqa: BLE001 - a package built for another torch fails in ways of its own
        return None


TABLE: dict[str, Callable[..., Works]] = {"stream": _copy, "stream.triad": _triad, "mlp": _mlp}
FAMILIES: dict[str, Callable[..., Works]] = {
    "linear": _linear,
    **dict.fromkeys(("matmul", "gemv"), _matmul),
    "kv_append": _append,
    "flash_attention": _flash,
    "unfused_attention": _unfused,
    "decode_attention": _decode,
}
WITHOUT = ("decode_attention.ragged",)  # torch has it with a mask only, and reads all of the cache
