"""A page of explorers as it would stand on the site, opened from disk."""

from __future__ import annotations

from pathlib import Path

from book.drawing import palette
from book.widgets.dual_widget import STATIC
from book.widgets.explorer import Explorer, explore
from tests import formulas

LINEAR = "#explore-linear"
CARDS = ["h100_sxm", "h200_sxm", "b200", "a100_80gb_sxm", "l4", "t4"]
COUNTED = {
    "rung": "counted",
    "label": "counted, k = 4,096, n = 14,336",
    "accelerator": None,
    "points": [
        {"m": m, "k": 4096, "n": 14336, "intensity": m / (1 + m / 4096 + m / 14336)}
        for m in (1, 16, 32, 128, 1024)
    ],
}


def linear(**more) -> Explorer:
    """The explorer of chapter 02, with evidence of two shapes."""
    return explore(
        formulas.linear,
        CARDS,
        model="llama3.1-8b",
        layer="gate",
        evidence=[COUNTED],
        published="linear",
        m=32,
        **more,
    )


def write(path: Path, *explorers: Explorer, theme: str = "light") -> Path:
    """A standalone page at `path`, with the bundle beside it."""
    (path.parent / "explorer.js").write_bytes((STATIC / "explorer.js").read_bytes())
    styles = palette.css() + (STATIC / "explorer.css").read_text(encoding="utf-8")
    look = (
        "body{margin:16px auto;max-width:1060px;padding:0 14px;"
        "background:var(--rl-background);color:var(--rl-text)}"
    )
    divs = "\n".join(e.static_html() for e in explorers)
    path.write_text(
        f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">'
        "<title>Explorers</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style>{styles}{look}</style><script defer src="explorer.js"></script></head>'
        f"<body><main><h1>Explorers</h1>{divs}</main></body></html>",
        encoding="utf-8",
    )
    return path


def opener(new_context, path: Path):
    """A function that opens the page from disk, with nothing moving by itself and nothing folded away."""

    def make(fragment="", width=820):
        look = {"viewport": {"width": width, "height": 900}, "reduced_motion": "reduce"}
        page = new_context(path.parent.as_uri(), **look).new_page()
        page.goto(path.as_uri() + fragment)
        page.evaluate("document.querySelectorAll('.rl-more').forEach((one) => { one.open = true; })")
        settle(page)
        return page

    return make


def settle(page):
    """Two frames: the change is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def number(page, symbol, root=LINEAR):
    """What the slider says beside itself."""
    return page.locator(f"{root}-{symbol}").evaluate(
        """(input) => {
            const [field, unit] = input.closest(".rl-slider").querySelectorAll(".rl-typed > *");
            return `${field.value} ${unit.textContent}`.trim();
        }"""
    )


def choose(page, name, value, root=LINEAR):
    """Choose in a dropdown, and let it be drawn."""
    page.select_option(f"{root}-{name}", value)
    settle(page)


def readouts(page, root=LINEAR):
    """The readouts, a string each."""
    return [" ".join(text.split()) for text in page.locator(f"{root} .rl-read > div").all_inner_texts()]


def slide(page, root, symbol, value):
    """Put a slider on the stop whose number this is, through its input event."""
    page.evaluate(
        """async ([id, value]) => {
            const input = document.getElementById(id);
            const next = (done) => requestAnimationFrame(() => requestAnimationFrame(done));
            let [low, high] = [0, Number(input.max)];
            while (low < high) {
                input.value = Math.floor((low + high) / 2);
                input.dispatchEvent(new Event("input", { bubbles: true }));
                await new Promise(next);
                const said = parseFloat(input.getAttribute("aria-valuetext").replaceAll(",", ""));
                if (said < value) low = Number(input.value) + 1;
                else high = Number(input.value);
            }
            input.value = low;
            input.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        [f"{root[1:]}-{symbol}", value],
    )
    settle(page)
    assert float(number(page, symbol, root).split()[0].replace(",", "")) == value


def calculated(page, payload, names, rows):
    """{output: its values at the rows}, by the code that the page has made of the payload."""
    return page.evaluate(
        """([payload, names, rows]) => {
            const { outputs } = InferenceRoofline.compileAll(payload);
            const at = (row) => Object.fromEntries(names.map((n, i) => [n, row[i]]));
            const column = ([n, run]) => [n, rows.map((row) => run(at(row)))];
            return Object.fromEntries(Object.entries(outputs).map(column));
        }""",
        [payload, names, rows],
    )


# Labels that collide or leave their picture, and lines that leave the frame.
OVERLAPS = """(root) => {
    const box = (el) => el.getBoundingClientRect();
    const found = [];
    for (const svg of document.querySelectorAll(root + " svg.rl-plot")) {
        const labels = [...svg.querySelectorAll(".rl-labels text")];
        for (const [i, a] of labels.entries()) {
            const p = box(a), frame = box(svg);
            if (p.left < frame.left || p.right > frame.right || p.top < frame.top || p.bottom > frame.bottom)
                found.push(`${a.textContent} leaves the picture`);
            for (const b of labels.slice(i + 1)) {
                const q = box(b);
                // boxes of text are taller than its letters by a few pixels
                const beside = p.left >= q.right || q.left >= p.right;
                if (!beside && p.top + 3 < q.bottom - 3 && q.top + 3 < p.bottom - 3)
                    found.push(`${a.textContent} lies on ${b.textContent}`);
            }
        }
        const [x0, x1] = svg.scale("x").range, [y0, y1] = svg.scale("y").range;
        for (const path of svg.querySelectorAll("[data-mark=line] path")) {
            const b = path.getBBox();
            if (b.x < x0 - 1 || b.x + b.width > x1 + 1 || b.y < y1 - 1 || b.y + b.height > y0 + 1)
                found.push("a line leaves the frame");
        }
    }
    return found;
}"""
