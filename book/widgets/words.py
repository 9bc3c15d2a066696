"""Every word that the explorer shows, but for labels, which formulas give their outputs.

Names in braces are filled in by the front-end, and by Python (`word`) where it says the same. A
translation is a catalog (see `book.say`): it replaces the messages of this table and of the labels.
"""

from __future__ import annotations

from collections.abc import Iterable

from book.catalog.service_limits import INTERACTIVE, READING
from book.say import say

# Seconds between two tokens, and what shorter waits are like.
PACES: tuple[tuple[float | None, str], ...] = (
    (INTERACTIVE.between, "pace_interactive"),
    (READING, "pace_reading"),
    (None, "pace_slow"),
)

# Words of every explorer, whatever its views.
_SHARED: dict[str, str] = {
    # controls
    "accelerator": say("accelerator"),
    "dtype": say("number format"),
    "preset_layer": say("model and layer"),
    "preset_model": say("model"),
    "preset_phase": say("phase"),
    "preset_engine": say("card and engine"),
    "own_sizes": say("sizes of your own"),
    "against": say("plotted against"),
    "compare": say("roofs drawn"),
    "compare_count": say("{count} of {all} cards"),
    "compare_legend": say("cards in the picture"),
    "view": say("picture"),
    "view_roofline": say("roofline"),
    "view_formula": say("formula"),
    "view_bars": say("bars"),
    "view_stack": say("terms"),
    "view_timeline": say("timeline"),
    "view_trace": say("a simulated run"),
    "lacks": say("{dtype}: not on this card"),
    "switched": say("{accelerator} has no {wanted} unit, so the number format is now {dtype}."),
    "lacking": say("{accelerator} has no unit for {missing}: those formats are greyed out."),
    "no_fact": say(
        "{accelerator}: the catalog has no {fact} of it, so nothing can be computed. Choose another card."
    ),
    "arithmetic_only": say(
        "{dtype} is what the products are computed in. How a weight is stored is a slider of its own, "
        "now at {stored}."
    ),
    "not_drawn": say("no {dtype}, not drawn"),
    "sliders": say("sliders"),
    "sliders_more": say("more sliders"),
    "more_controls": say("more: {names}"),
    "typed": say("type it"),
    "typed_unread": say(
        "“{text}” can't be read as a number. Write it like 4096, 4,096, 4k or 1M; {name} is still {now}."
    ),
    "typed_range": say("{name} goes from {low} to {high}, so “{text}” became {value}."),
    "typed_whole": say("{name} is counted in whole numbers, so “{text}” became {value}."),
    "typed_steps": say("{name} is one of {steps}, so “{text}” became {value}."),
    "keyboard": say("Keyboard: ← → one step of a slider, Page Up and Page Down several."),
    "reset": say("reset"),
    "copy": say("copy link to this position"),
    "copied": say("link copied"),
    "copy_by_hand": say("the link is in the address bar"),
    # in the picture
    "stuck": say("{name}: no slider moves this point along the axis."),
    "of_roof": say("{percent} of the roof"),
    "measured_points": say("measured points"),
    "more_here": say("and {count} more at this place"),
    # readouts
    "attainable": say("attainable"),
    "of_peak": say("{percent} of peak"),
    "time": say("time floor"),
    "time_note": say("at the attainable rate"),
    "peak": say("peak"),
    "peak_note": say("bandwidth {bandwidth}"),
    "bound": say("bound by"),
    "memory": say("memory"),
    "compute": say("compute"),
    "ridge_note": say("ridge {ridge} FLOP/byte"),
    "no_value": "–",
    # the picture
    "intensity_axis": say("arithmetic intensity (FLOP/byte) →"),
    "rate_axis": say("↑ FLOP/s"),
    "waits": say("waits for memory"),
    "computes": say("computes"),
    "ridge": say("ridge {ridge}"),
    "ridge_of": say("ridge of {accelerator}: {ridge}"),
    "limit": say("limit: {label}"),
    "more": "+{count}",
    "alt_roofline": say("Roofline. {summary}"),
    "work": say("{intensity} FLOP/byte, {percent} of the time"),
    "work_short": say("{percent} of the time"),
    "band": say("surely between these"),
    "alt_formula": say("{value} against {against}. {summary}"),
    # the legend
    "legend": say("what the marks are"),
    "rung_predicted": say("predicted"),
    "rung_counted": say("counted"),
    "rung_executed": say("executed"),
    "rung_compiled": say("compiled"),
    "rung_timed": say("timed here"),
    "rung_recorded": say("recorded"),
    "rung_published": say("published"),
    "note_counted": say("this book's kernel, byte by byte"),
    "note_timed": say("this book's kernel, on this card"),
    "predicted_note": say("the formula at the sliders' position"),
    "not_measured": say("not measured yet"),
    "none_for": say("none for {accelerator}"),
    "not_in_view": say("measures time, so it is drawn on the roofline only"),
    "not_in_picture": say("not in this picture"),
    "other_shape": say("Faded points are of another shape than the sliders' {yours}."),
    "use_shape": say("Set the sliders to"),
    "multiplied_in": say("multiplied in {dtype}"),
    "or": say("or"),
    # spoken and written summaries
    "summary_roof": say(
        "{accelerator}, {dtype}, at {position}: intensity {intensity} FLOP/byte, attainable "
        "{attainable}, {percent} of peak, bound by {bound}."
    ),
    "summary_plain": say("At {position}: {value}."),
    "summary_whole": say("{about}, at {position}: {values}."),
    # run the kernel here
    "run": say("Run the kernel here"),
    "running": say("running …"),
}

# What a formula with weights or a cache says below its picture: what memory holds, and what can't be.
_OF_MEMORY: dict[str, str] = {
    "fits_model": say("It fits: {needed} of the {there} that an engine may use of a card's {memory}."),
    "fits_weights": say(
        "The weights fit: {needed} of the {there} that an engine may use of a card's {memory}."
    ),
    "fits_cache": say(
        "The caches fit, with no weights counted: {needed} of the {there} that an engine may use of a "
        "card's {memory}."
    ),
    "fits_layer": say(
        "The caches of this layer fit, with nothing else counted: {needed} of the {there} that an engine "
        "may use of a card's {memory}."
    ),
    "lacks_model": say(
        "Does not fit: it needs {needed} on a card of {memory}, of which an engine may use {there}."
    ),
    "lacks_weights": say(
        "The weights do not fit: they need {needed} on a card of {memory}, of which an engine may use "
        "{there}."
    ),
    "lacks_cache": say(
        "The caches alone do not fit: they need {needed} on a card of {memory}, of which an engine may "
        "use {there}."
    ),
    "lacks_layer": say(
        "The caches of this layer alone do not fit: they need {needed} on a card of {memory}, of which an "
        "engine may use {there}."
    ),
    "holds": say("There is room for {count} of these sequences."),
    "holds_one": say("There is room for 1 of these sequences."),
    "holds_none": say("There is room for none of these sequences."),
    "weights_alone": say("The weights alone are too much."),
    "cards": say("{cards} cards would hold all of it."),
    "cards_one": say("1 card would hold all of it."),
    "cards_none": say("No number of these cards up to {most} would hold all of it."),
    "over_context": say(
        "{model} takes contexts of up to {max_context} tokens: a longer one can't be served."
    ),
    "uneven_cards": say(
        "{heads} query heads and {kv_heads} KV heads can't be dealt out evenly to {gpus} cards."
    ),
    "no_link": say(
        "The catalog has no link between two of these cards, so {gpus} of them can't share a model."
    ),
    "uneven_shared": say(
        "Every KV head serves as many query heads: {heads} of these can't share {kv_heads} evenly."
    ),
    "here_lacks": say("{position}: does not fit"),
    "here_broken": say("{position}: can't be"),
    "beyond": say("beyond what fits"),
}

# Words that a view of this kind shows, and no other.
_OF_A_VIEW: dict[str, dict[str, str]] = {
    "bars": {
        "bars_rule": say("Bars one below the other run at the same time: the longest is what you wait for."),
        "shares": say("share of the bar"),
        "equal_at": say("equal at {at}"),
        "alt_bars": say("Bars. {summary}"),
        "alt_shares": say("The shares of {parts} against {against}. {equal}"),
    },
    "stack": {
        "sum": say("= {sum}"),
        "rest": say("rest {rest}"),
        "stack_alone": say("The terms add up to {sum}. Nothing was measured at this position."),
        "stack_under": say(
            "The terms add up to {sum}; {measured} was measured, so that {rest} is left over."
        ),
        "stack_over": say(
            "The terms add up to {sum}; {measured} was measured, so that the terms say {rest} too much."
        ),
        "stack_none": say(
            "There is no sum at this position, for want of: {parts}. Drawn are the terms that are known."
        ),
        "stack_queue": say("{running} of {asked} run at a time, the others wait."),
        "alt_stack": say("Terms, one after the other. {summary}"),
    },
    "timeline": {
        "user": say("user {number}"),
        "newcomer": say("new prompt"),
        "waits_once": say("nothing for {wait}"),
        "waits_each": say("a token every {wait}"),
        "first_token": say("first token after {time}"),
        "pace_interactive": say("within the 40 ms that MLPerf asks of an interactive service"),
        "pace_reading": say("faster than most people read"),
        "pace_slow": say("slower than most people read"),
        "timeline_whole": say(
            "A token every {step} is {pace}. Then a prompt of {tokens} tokens comes in, all of it in "
            "one step. Everybody's next token takes {mixed}, {times} times as long. "
            "The newcomer waits {served} for a first token."
        ),
        "timeline_chunks": say(
            "A token every {step} is {pace}. Then a prompt of {tokens} tokens comes in, in {chunks} "
            "steps. In the longest of them everybody's next token takes {mixed}, {times} times as "
            "long. "
            "The newcomer waits {served} for a first token."
        ),
        "alt_timeline": say("Tokens along time. {summary}"),
        "predicted_note_timeline": say("each tick is a token"),
    },
    "trace": {
        "run_at": say("One simulated run, at {position}."),
        "run_moved": say("One simulated run, at {position}, the nearest that this page has."),
        "run_expected": say("expected: {value}"),
        "time_axis": say("time"),
        "run_says": say("{label}: this run {measured}, the formula {value}."),
        "alt_trace": say("A simulated run along time, at {position}. {comparison} {summary}"),
    },
}

WORDS: dict[str, str] = {
    name: text for words in (_SHARED, _OF_MEMORY, *_OF_A_VIEW.values()) for name, text in words.items()
}


def words_for(views: Iterable[str], held: str = "") -> dict[str, str]:
    """The words of an explorer with views of these kinds: they travel with it. held: as `Capacity` says."""
    spoken = (f"fits_{held}", f"lacks_{held}")
    memory = {
        name: text
        for name, text in _OF_MEMORY.items()
        if held and (name in spoken or not name.startswith(("fits_", "lacks_")))
    }
    of_views = {name: text for view in views for name, text in _OF_A_VIEW.get(view, {}).items()}
    return {**_SHARED, **memory, **of_views}


def word(name: str, **values: str) -> str:
    """The words of that name, `values` put in."""
    return WORDS[name].format(**values) if values else WORDS[name]
