"""What is in a record: each field once, with its type and its unit; and how old records are read.

The page "Records" shows these tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from book.say import say

SCHEMA = 2
MEASURED, REHEARSED = "measured", "rehearsed"
NUMBER = (int, float)
LARGEST = 2**63  # no whole number of a record is as large
LONGEST = 20_000  # letters of any text
ONE_LINE = 120  # letters of a name
DEEPEST = 12  # an object in an object
LONGEST_RUN = 3600.0  # s: no kernel that anybody times takes an hour
_TYPES = {  # as JSON calls it, and as a sentence does
    str: ("string", "text"),
    dict: ("object", "an object"),
    list: ("array", "a list"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
}


class RecordError(ValueError):
    """A record that cannot be trusted: the message names the file, the field and the remedy."""


@dataclass(frozen=True)
class Field:
    """One field. unit: SI, or "". sign: what a number must be, "", "at least 0" or "positive".

    choices: the values allowed, () for any. optional: a record may lack it, or hold null there.
    each: of a list or an object, the types of what is in it. line: a name, shown in tables and figures:
    one line of printable text without dollars and backslashes, of which a figure makes mathematics.
    """

    name: str
    types: tuple[type, ...]
    says: str
    unit: str = ""
    sign: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False
    each: tuple[type, ...] = ()
    line: bool = False

    @property
    def json(self) -> str:
        """The type as JSON calls it."""
        return _TYPES[self.types[-1]][0]

    def wrong(self, holder: Mapping[str, Any]) -> str:
        """What is wrong with this field of `holder`, in words that follow its name; "" if nothing is."""
        value = holder.get(self.name)
        if value is None and self.optional:
            return ""
        if self.name not in holder:
            return " is missing"
        number = isinstance(value, NUMBER) and not isinstance(value, bool)
        if not isinstance(value, self.types) or (self.types != (bool,) and isinstance(value, bool)):
            return f" = {value!r}: must be {_TYPES[self.types[-1]][1]}"
        if self.line and (len(value) > ONE_LINE or not value.isprintable() or set(value) & set("$\\")):
            return (
                f" = {value[:ONE_LINE]!r}: must be one line of at most {ONE_LINE} printable letters, "
                "without $ and backslash"
            )
        if self.each and (problem := self._wrong_inside(value)):
            return problem
        if self.choices and value not in self.choices:
            return f" = {value!r}: must be {' or '.join(self.choices)}"
        if number and not math.isfinite(value):
            return f" = {value!r}: must be a finite number"
        if self.sign == "positive" and value <= 0:
            return f" = {value!r}: must be a positive number"
        if self.sign == "at least 0" and value < 0:
            return f" = {value!r}: must be at least 0"
        if self.unit == "s" and number and value > LONGEST_RUN:
            return f" = {value!r}: must be {LONGEST_RUN:g} s at most"
        return ""

    def _wrong_inside(self, value: Any) -> str:
        """What is wrong with the first thing in a list or an object that isn't as `each` says; or ""."""
        inside = value if isinstance(value, Mapping) else dict(enumerate(value))
        words = "text" if self.each == (str,) else "a positive number" if self.each == NUMBER else ""
        for name, one in inside.items():
            right = isinstance(one, self.each) and (bool in self.each or not isinstance(one, bool))
            if right and self.each == NUMBER:
                right = math.isfinite(one) and one > 0
            if not right:
                return f"[{name!r}] = {one!r}: must be {words or 'text, a number, true, false or null'}"
        return ""


def _text(name: str, says: str, **more: Any) -> Field:
    return Field(name, (str,), says, **more)


def _name(name: str, says: str, **more: Any) -> Field:
    return _text(name, says, line=True, **more)


def _number(name: str, unit: str, says: str, sign: str = "positive", **more: Any) -> Field:
    return Field(name, NUMBER, says, unit, sign, **more)


RECORD = (
    Field("schema", (int,), say("the version of this form")),
    _text(
        "kind",
        say("measured on a device that is there, or rehearsed on an imaginary one"),
        choices=(MEASURED, REHEARSED),
    ),
    Field("device", (dict,), say("what was measured on")),
    Field("software", (dict,), say("versions: python, torch, triton, numpy, and cuda or hip")),
    Field("clocks", (dict,), say("what the driver said before and after: clocks in MHz, power limit in W")),
    _name("date", say("when it began, ISO 8601 with its offset")),
    _name("commit", say('of the checkout; "+" after it means that files had been changed')),
    _text("command", say("what was typed")),
    _text("status", say("whether the run reached its end"), choices=("partial", "complete")),
    Field("correct", (dict,), say("kernel: how it did against float64"), optional=True),
    Field("ceilings", (dict,), say("arithmetic: the two ceilings of this run")),
    Field("sweeps", (list,), say("what was timed")),
    Field("overhead", (dict,), say("what a launch costs"), optional=True),
    Field("cold_cache", (dict,), say("how the cache was emptied before each run"), optional=True),
    Field("missing", (list,), say("what was to be measured and wasn't, and why"), optional=True),
    Field("notes", (list,), say("sentences: what was left out, and why"), each=(str,)),
    _name("by", say("who measured it, if they want to be named"), optional=True),
)

SOFTWARE = tuple(
    _name(package, says, optional=True)
    for package, says in {
        "python": say("its version"),
        "torch": say("its version"),
        "triton": say("its version"),
        "numpy": say("its version"),
        "cuda": say("what torch was built for, on a card of NVIDIA's"),
        "hip": say("what torch was built for, on a card of AMD's"),
        "system": say("the operating system"),
    }.items()
)

ANYTHING = (str, int, float, bool, type(None))

CLOCKS = (
    Field("before", (dict,), say("when the run began"), optional=True, each=ANYTHING),
    Field("after", (dict,), say("when it had ended"), optional=True, each=ANYTHING),
)

DEVICE = (
    _name("name", say("as the driver calls it")),
    _text("kind", say("what it is"), choices=("gpu", "cpu"), optional=True),
    _text("torch_device", say("what torch calls it"), optional=True),
    _text("accelerator", say("its row of the catalog"), optional=True),
    _text("target", say("what Triton compiles for"), optional=True),
    _number("memory_bytes", "byte", say("all its memory"), "at least 0", optional=True),
    _number("free_bytes", "byte", say("what was free when the run began"), "at least 0", optional=True),
    _number("l2_bytes", "byte", say("its last cache"), "at least 0", optional=True),
    _number(
        "sm_count", "", say("multiprocessors or compute units; cores of a CPU"), "at least 0", optional=True
    ),
    _text("uuid", say("the card's own number; not kept on the shelf"), optional=True),
    _text("pci", say("its place on the bus; not kept on the shelf"), optional=True),
    _text("architecture", say("what the driver calls its kind"), optional=True),
    Field("imaginary", (bool,), say("true in a rehearsal"), optional=True),
)

OUTCOME = (
    _text("dtype", say("what it was tried in"), optional=True),
    _text("verdict", say("correct, or what is wrong")),
    _number("relative_error", "", say("the largest, against float64"), "at least 0", optional=True),
    Field("runs", (int,), say("how many sizes"), optional=True),
)

GAP = (
    _text("experiment", say("the kernel")),
    _text("dtype", say("as in the sweep"), optional=True),
    Field("sizes", (dict,), say("which; null for all"), optional=True),
    _text("why", say("failed, wrong, memory, unsupported, time or stopped")),
    _text("reason", say("a sentence")),
)

CEILINGS = (
    _name("dtype", say("of the arithmetic")),
    _number("bandwidth", "byte/s", say("the best of `bandwidths`")),
    _name("bandwidth_by", say("which of them")),
    _number("peak", "FLOP/s", say("the best of `peaks`")),
    _name("peak_by", say("which of them, or that it is the datasheet's")),
    Field("bandwidths", (dict,), say("every stream that was tried"), "byte/s", each=NUMBER),
    Field("peaks", (dict,), say("every product that was tried"), "FLOP/s", each=NUMBER),
    Field("notes", (list,), say("sentences"), each=(str,)),
)

SWEEP = (
    _name("experiment", say("the kernel; torch or own before it if the code is not this book's")),
    _name("axis", say("the size that varies")),
    _name("dtype", say("what tensors are stored in")),
    _name("arithmetic", say("what is computed in, and whose ceilings hold"), optional=True),
    Field("fixed", (dict,), say("the sizes that stay"), optional=True),
    Field("points", (list,), say("one for each size")),
)

POINT = (
    Field("sizes", (dict,), say("every size of the kernel")),
    _number("seconds", "s", say("the median of its runs")),
    _number("low", "s", say("a fifth of the runs took less"), optional=True),
    _number("high", "s", say("a fifth of the runs took more"), optional=True),
    Field("runs", (int,), say("how many"), sign="positive", optional=True),
    _number("intensity", "FLOP/byte", say("by the formula"), "at least 0"),
    _number("bytes_per_s", "byte/s", say("the formula's compulsory bytes over seconds")),
    _number("flops_per_s", "FLOP/s", say("its useful FLOPs over seconds"), "at least 0"),
    _number("relative_error", "", say("against float64"), "at least 0", optional=True),
    _number("dram_bytes", "byte", say("what the hardware counted"), optional=True),
    _number("of_roof", "", say("share of what the ceilings of this run allow"), optional=True),
    _text("dtype", say("as in the sweep"), optional=True),
    _number("of_bandwidth", "", say("share of the bandwidth of this run"), "at least 0", optional=True),
    _number("of_peak", "", say("share of the peak of this run"), "at least 0", optional=True),
    _number("of_datasheet", "", say("share of what the datasheet allows"), "at least 0", optional=True),
    Field("clocks", (dict,), say("clock, power, heat and what slowed the card, while it ran"), optional=True),
    Field("plan", (dict,), say("the tiles and splits that ran"), optional=True),
    Field(
        "kernels",
        (tuple, list),
        say("what was launched, with registers and spills"),
        optional=True,
        each=(dict,),
    ),
    _text("way", say("how the work was started, graph or eager"), optional=True),
    _number("launch_seconds", "s", say("Python's own time of starting it"), "at least 0", optional=True),
    _number("empty_seconds", "s", say("an empty kernel, started as it is"), "at least 0", optional=True),
    Field("notes", (tuple, list), say("sentences"), optional=True, each=(str,)),
    Field("baseline", (dict,), say("the vendor's kernel on the same tensors in the same run"), optional=True),
    Field("alarms", (list,), say("why it is impossible, if it is; such a point is not shown"), each=(str,)),
)

SEEN = (
    Field("sm_mhz", (dict,), say("the clock of its processors, MHz: least, median, most"), optional=True),
    Field("power_w", (dict,), say("its power, W"), optional=True),
    Field("celsius", (dict,), say("its heat, degrees Celsius"), optional=True),
    Field("reasons", (tuple, list), say("what slowed it down"), optional=True, each=(str,)),
    Field("samples", (int,), say("how often the driver was asked"), sign="at least 0", optional=True),
)

OVERHEAD = (
    _number("bandwidth", "byte/s", say("what the floors were made with")),
    _name("bandwidth_by", say("what reached it")),
    Field("lines", (tuple, list), say("steps of more and more launches of one work")),
    Field("laws", (tuple, list), say("steps of as many launches, of larger and larger layers")),
)

LINE = (
    _name("work", say("what was launched")),
    _name("way", say("how, eager or graph")),
    Field("counts", (tuple, list), say("launches of each step"), each=NUMBER),
    Field("seconds", (tuple, list), say("time of each step"), "s", each=NUMBER),
)

LAW = (
    _name("way", say("how, eager or graph")),
    Field("launches", (int,), say("of each step"), sign="positive"),
    Field("sizes", (tuple, list), say("rows and columns of the layers of each step"), each=NUMBER),
    Field("floors", (tuple, list), say("the least that each step can take"), "s", each=NUMBER),
    Field("seconds", (tuple, list), say("time of each step"), "s", each=NUMBER),
)

BASELINE = (
    _name("name", say("whose kernel")),
    _number("seconds", "s", say("the median of its runs, by the same clock")),
    _number("relative_error", "", say("of its result, against ours"), "at least 0", optional=True),
    Field("others", (dict,), say("name: seconds of every other one"), "s", optional=True, each=NUMBER),
    Field("again", (dict,), say("our own seconds, low, high after it"), "s", optional=True, each=NUMBER),
    _number("share", "", say("its seconds over ours"), optional=True),
    _number("low", "s", say("a fifth of the runs took less"), optional=True),
    _number("high", "s", say("a fifth of the runs took more"), optional=True),
)

TABLES: Mapping[str, tuple[Field, ...]] = {
    "record": RECORD,
    "device": DEVICE,
    "software": SOFTWARE,
    "clocks": CLOCKS,
    "correct[kernel]": OUTCOME,
    "missing[]": GAP,
    "ceilings[arithmetic]": CEILINGS,
    "sweeps[]": SWEEP,
    "sweeps[].points[]": POINT,
    "sweeps[].points[].clocks": SEEN,
    "sweeps[].points[].baseline": BASELINE,
    "overhead": OVERHEAD,
    "overhead.lines[]": LINE,
    "overhead.laws[]": LAW,
}
_REMEDY = "measure again"


def upgraded(record: Any) -> Any:
    """A record in the form of today. The first schema had "gpu" or "cpu" for its kind, and no rehearsals."""
    if not isinstance(record, Mapping) or record.get("schema") != 1:
        return record
    device = record.get("device")
    if isinstance(device, Mapping):
        device = {**device, "kind": device.get("kind", record.get("kind"))}
    kind = MEASURED if record.get("kind") in ("gpu", "cpu") else record.get("kind")
    return {**record, "schema": SCHEMA, "kind": kind, "device": device}


def validate(record: Any, path: Path | str) -> None:
    """Raise RecordError unless `record` has every field, of the right type and a possible value."""
    if not isinstance(record, Mapping):
        raise RecordError(f"{path}: a record is a JSON object; {_REMEDY}.")
    if record.get("schema") != SCHEMA:
        raise RecordError(
            f"{path}: schema = {record.get('schema')!r}: this code reads schemas 1 and {SCHEMA}; "
            f"{_REMEDY}, or use the commit that the record names."
        )
    _bounded(record, f"{path}: ", "")
    _hold(record, RECORD, f"{path}: ")
    _hold(record["device"], DEVICE, f"{path}: device.")
    _hold(record["software"], SOFTWARE, f"{path}: software.")
    _hold(record["clocks"], CLOCKS, f"{path}: clocks.")
    if record.get("overhead"):
        _hold_overhead(record["overhead"], f"{path}: overhead.")
    if not record["device"]["name"]:
        raise RecordError(f"{path}: device.name is missing: say which card was measured.")
    if record["device"].get("imaginary") and record["kind"] != REHEARSED:
        raise RecordError(
            f"{path}: kind = {record['kind']!r}: its device is imaginary, so it is {REHEARSED}; "
            "nothing was measured."
        )
    for kernel, outcome in (record.get("correct") or {}).items():
        _hold(outcome, OUTCOME, f"{path}: correct.{kernel}.")
    for i, gap in enumerate(record.get("missing") or ()):
        _hold(gap, GAP, f"{path}: missing[{i}].")
    for arithmetic, kept in record["ceilings"].items():
        _hold(kept, CEILINGS, f"{path}: ceilings[{arithmetic!r}].")
    for i, sweep in enumerate(record["sweeps"]):
        where = f"{path}: sweeps[{i}]"
        _hold(sweep, SWEEP, f"{where}.")
        for j, point in enumerate(sweep["points"]):
            _hold(point, POINT, f"{where}.points[{j}].")
            for size, value in point["sizes"].items():
                if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                    raise RecordError(
                        f"{where}.points[{j}].sizes.{size} = {value!r}: must be a positive whole number; "
                        f"{_REMEDY}."
                    )
            if point.get("baseline") is not None:
                _hold(point["baseline"], BASELINE, f"{where}.points[{j}].baseline.")
            if point.get("clocks") is not None:
                _hold(point["clocks"], SEEN, f"{where}.points[{j}].clocks.")


def _hold_overhead(overhead: Mapping[str, Any], where: str) -> None:
    """Raise RecordError unless a figure can be drawn of it: equally long lists, and no more fields."""
    _hold(overhead, OVERHEAD, where)
    for part, fields in (("lines", LINE), ("laws", LAW)):
        for i, one in enumerate(overhead[part]):
            _hold(one, fields, f"{where}{part}[{i}].")
            lists = {len(value) for value in one.values() if isinstance(value, list | tuple)}
            if len(lists) != 1 or max(lists) < 2 or set(one) != {field.name for field in fields}:
                raise RecordError(
                    f"{where}{part}[{i}]: must have {', '.join(field.name for field in fields)}, and two or "
                    f"more of each list, as many in one as in the other; {_REMEDY}."
                )


def _bounded(value: Any, where: str, name: str, depth: int = 0) -> None:
    """Raise RecordError for a number that isn't finite, or anything that no run would write."""
    problem = ""
    if isinstance(value, int) and abs(value) >= LARGEST:
        problem = "a whole number that is too large"
    elif isinstance(value, float) and not math.isfinite(value):
        problem = f"{value!r}: must be a finite number"
    elif isinstance(value, str) and len(value) > LONGEST:
        problem = f"text of more than {LONGEST:,} letters"
    elif depth > DEEPEST:
        problem = "an object in too many objects"
    if problem:
        raise RecordError(f"{where}{name} = {problem}; {_REMEDY}.")
    if isinstance(value, Mapping):
        for key, one in value.items():
            _bounded(key, where, "a name")
            _bounded(one, where, f"{name}.{key}".lstrip("."), depth + 1)
    elif isinstance(value, list | tuple):
        for i, one in enumerate(value):
            _bounded(one, where, f"{name}[{i}]", depth + 1)


def _hold(holder: Any, fields: Iterable[Field], where: str) -> None:
    """Raise RecordError for the first of `fields` that `holder` lacks or has wrong."""
    if not isinstance(holder, Mapping):
        raise RecordError(f"{where.removesuffix('.')} = {holder!r}: must be an object; {_REMEDY}.")
    for field in fields:
        if problem := field.wrong(holder):
            raise RecordError(f"{where}{field.name}{problem}; {_REMEDY}.")
