"""The "Run the kernel here" button: an explorer with an experiment under it.

It needs a kernel, so it is made of ipywidgets; on the static site only the explorer shows.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from book.widgets.position import position
from book.widgets.words import word


def _confirm(experiment: Any, **sizes: Any) -> Any:
    from kernels.evidence import confirm  # only when it is asked for: it brings in torch

    return confirm(experiment, rungs=("counted", "timed"), timed_sizes=sizes, **sizes)


class Bench(ipywidgets.VBox):
    """An explorer, a button that measures at its position, and what the measurement said.

    explorer: a `book.widgets.explorer.Explorer`. measure(experiment, **sizes): returns evidence with
    `.points()`, and `_repr_html_` if it has a table; the axis is passed as a list of one value.
    """

    def __init__(self, explorer: Any, experiment: Any, measure: Callable[..., Any] | None = None) -> None:
        self.explorer = explorer
        self.experiment = experiment
        self.measure = measure or _confirm
        at = {**position(explorer), **self._own()}
        if missing := [s for s in experiment.sizes if s not in at]:
            raise ValueError(
                f"{experiment.name}: size {missing[0]} is neither a slider ({', '.join(explorer.values)}) "
                "nor in the experiment's counted sweep; give it a value in one of them."
            )
        self.button = ipywidgets.Button(description=word("run"), layout={"width": "auto"})
        self.said = ipywidgets.HTML()
        self.button.on_click(self.run)
        linked = isinstance(explorer, ipywidgets.Widget)
        self.drawn = explorer if linked else ipywidgets.Output()  # no anywidget: drawn as an output
        self._draw()
        super().__init__([self.drawn, self.button, self.said])

    def _draw(self) -> None:
        """Show an explorer that doesn't hear Python anew, as it is now."""
        if self.drawn is not self.explorer:
            data, metadata = self.explorer._repr_mimebundle_()
            self.drawn.outputs = ({"output_type": "display_data", "data": data, "metadata": metadata},)

    def _own(self) -> dict[str, Any]:
        """The experiment's own sizes, for those that neither a slider nor the model decides."""
        return {
            k: v
            for k, v in self.experiment.sweep.get("counted", {}).items()
            if not isinstance(v, list | tuple)
        }

    def sizes(self) -> dict[str, Any]:
        """What will be run: the sliders' position, in the experiment's names."""
        at = {**self._own(), **position(self.explorer)}
        return {s: [at[s]] if s == self.experiment.axis else at[s] for s in self.experiment.sizes}

    def run(self, _: Any = None) -> None:
        """Measure at the sliders' position and add the points. A failure is shown, in its own words."""
        self.button.disabled, self.button.description = True, word("running")
        try:
            evidence = self.measure(self.experiment, **self.sizes())
            self.explorer.add_points(evidence)
            self._draw()
            table = getattr(evidence, "_repr_html_", None)
            self.said.value = table() if table else ""
        except Exception as error:  # a button has no other place to say what went wrong
            self.said.value = f"<p>{html.escape(f'{type(error).__name__}: {error}')}</p>"
        finally:
            self.button.disabled, self.button.description = False, word("run")

    def __repr__(self) -> str:
        """The same at every run, as it lands in the page's source."""
        return f"Bench({self.explorer!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live widget, and for a page without a kernel the explorer alone."""
        live = super()._repr_mimebundle_(**kwargs) or {}
        still, _ = self.explorer._repr_mimebundle_(**kwargs)
        view = "application/vnd.jupyter.widget-view+json"
        return {**still, **({view: live[view]} if view in live else {}), "text/plain": repr(self)}
