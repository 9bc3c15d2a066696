"""Every word that the explorer shows, but for labels, which formulas give their outputs.

Names in braces are filled in by the front-end, and by Python where it says the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from book.say import say

# Seconds between two tokens, and what shorter waits are like. People read 10 to 20 tokens a second.
PACES: tuple[tuple[float | None, str], ...] = (
    (0.05, "pace_fast"),
    (0.1, "pace_reading"),
    (0.15, "pace_slow"),
    (None, "pace_broken"),
)

# Words of every explorer, whatever its views.
_SHARED: dict[str, str] = {
    # controls
    "accelerator": "accelerator",
    "dtype": "number format",
    "preset_layer": "model and layer",
    "preset_model": "model",
    "preset_phase": "phase",
    "own_sizes": "sizes of your own",
    "against": "plotted against",
    "compare": "roofs drawn",
    "compare_count": "{count} of {all} cards",
    "compare_legend": "cards in the picture",
    "view": "picture",
    "view_roofline": "roofline",
    "view_formula": "formula",
    "view_bars": "bars",
    "view_timeline": "timeline",
    "view_trace": "a simulated run",
    "lacks": "{dtype}: not on this card",
    "switched": "{accelerator} has no {wanted} unit, so the number format is now {dtype}.",
    "lacking": "{accelerator} has no unit for {missing}: those formats are greyed out.",
    "no_fact": "{accelerator}: the catalog has no {fact} of it, so nothing can be computed. "
    "Choose another card.",
    "not_drawn": "no {dtype}, not drawn",
    "sliders": "sliders",
    "keyboard": "Keyboard: ← → one step of a slider, Page Up and Page Down several.",
    "reset": "reset",
    "copy": "copy link to this position",
    "copied": "link copied",
    "copy_by_hand": "the link is in the address bar",
    # readouts
    "attainable": "attainable",
    "of_peak": "{percent} of peak",
    "time": "time floor",
    "time_note": "at the attainable rate",
    "peak": "peak",
    "peak_note": "bandwidth {bandwidth}",
    "bound": "bound by",
    "memory": "memory",
    "compute": "compute",
    "ridge_note": "ridge {ridge} FLOP/byte",
    "no_value": "–",
    # the picture
    "intensity_axis": "arithmetic intensity (FLOP/byte) →",
    "rate_axis": "↑ FLOP/s",
    "waits": "waits for memory",
    "computes": "computes",
    "ridge": "ridge {ridge}",
    "ridge_of": "ridge of {accelerator}: {ridge}",
    "limit": "limit: {label}",
    "more": "+{count}",
    "alt_roofline": "Roofline. {summary}",
    "band": "surely between these",
    "alt_formula": "{value} against {against}. {summary}",
    # the legend
    "legend": "what the marks are",
    "rung_predicted": "predicted",
    "rung_counted": "counted",
    "rung_compiled": "compiled",
    "rung_timed": "timed here",
    "rung_recorded": "recorded",
    "rung_published": "published",
    "note_counted": "this book's kernel, byte by byte",
    "note_timed": "this book's kernel, on this card",
    "predicted_note": "the formula at the sliders' position",
    "not_measured": "not measured yet",
    "none_for": "none for {accelerator}",
    "not_in_view": "measures time, so it is drawn on the roofline only",
    "not_in_picture": "not in this picture",
    "other_shape": "Faded points are of another shape than the sliders' {yours}.",
    "use_shape": "Set the sliders to",
    "or": "or",
    # spoken and written summaries
    "summary_roof": "{accelerator}, {dtype}, at {position}: intensity {intensity} FLOP/byte, "
    "attainable {attainable}, {percent} of peak, bound by {bound}.",
    "summary_plain": "At {position}: {value}.",
    "summary_whole": "{about}, at {position}: {values}.",
    # run the kernel here
    "run": "Run the kernel here",
    "running": "running …",
}

# Words that a view of this kind shows, and no other.
_OF_A_VIEW: dict[str, dict[str, str]] = {
    "bars": {
        "bars_rule": "Bars one below the other run at the same time: the longest is what you wait for.",
        "shares": "share of the bar",
        "equal_at": "equal at {at}",
        "alt_bars": "Bars. {summary}",
        "alt_shares": "The shares of {parts} against {against}. {equal}",
    },
    "timeline": {
        "user": "user {number}",
        "newcomer": "new prompt",
        "waits_once": "nothing for {wait}",
        "waits_each": "a token every {wait}",
        "first_token": "first token after {time}",
        "pace_fast": "faster than anyone reads",
        "pace_reading": "the pace of reading",
        "pace_slow": "slower than reading",
        "pace_broken": "so slow that it feels broken",
        "timeline_whole": "A token every {step} is {pace}. Then a prompt of {tokens} tokens comes in, "
        "all of it in one step. Everybody's next token takes {mixed}, {times} times as long, "
        "which is {pace_mixed}. The newcomer waits {served} for a first token.",
        "timeline_chunks": "A token every {step} is {pace}. Then a prompt of {tokens} tokens comes in, in "
        "{chunks} steps. In each of them everybody's next token takes {mixed}, {times} times as long, "
        "which is {pace_mixed}. The newcomer waits {served} for a first token.",
        "alt_timeline": "Tokens along time. {summary}",
        "predicted_note_timeline": "each tick is a token",
    },
    "trace": {
        "run_at": "One simulated run, at {position}.",
        "run_moved": "One simulated run, at {position}, the nearest that this page has.",
        "run_expected": "expected: {value}",
        "time_axis": "time",
        "run_says": "{label}: this run {measured}, the formula {value}.",
        "alt_trace": "A simulated run along time, at {position}. {comparison} {summary}",
    },
}

WORDS: dict[str, str] = {
    name: text for words in (_SHARED, *_OF_A_VIEW.values()) for name, text in words.items()
}


def words_for(views: Iterable[str]) -> dict[str, str]:
    """The words of an explorer with views of these kinds: they travel with it."""
    wanted = {**_SHARED, **{name: text for view in views for name, text in _OF_A_VIEW.get(view, {}).items()}}
    return {name: say(text) for name, text in wanted.items()}


def word(name: str, **values: str) -> str:
    """The words of that name, `values` put in."""
    return say(WORDS[name], **values)
