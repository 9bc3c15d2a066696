// Headings of `.rl-sortable` tables become buttons that sort their column: numbers from the largest
// first, words from A. Empty cells stay last. Without this script the table is as readable as before.
(function () {
  "use strict";

  function sort(table, heading, column) {
    const numeric = heading.dataset.sort === "number";
    const before = heading.getAttribute("aria-sort");
    const way = before ? (before === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
    const sign = way === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => ({ row, key: row.cells[column].dataset.key }));
    rows.sort((a, b) => {
      if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "");
      const order = numeric ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true });
      return sign * order;
    });
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", way);
    body.append(...rows.map((entry) => entry.row));
  }

  // A field above the table: rows that hold all of its words stay. How many those are is said aloud.
  function addFilter(table) {
    const label = document.createElement("label");
    const field = document.createElement("input");
    const said = document.createElement("output");
    field.type = "search";
    label.className = "rl-filter";
    label.append(table.dataset.filter, field, said);
    table.parentElement.before(label);
    const rows = Array.from(table.tBodies[0].rows);
    const update = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let kept = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        kept += !row.hidden;
      }
      said.value = words.length ? `${kept} / ${rows.length}` : "";
    };
    field.addEventListener("input", update);
    // A link to one row shows it, whatever was typed.
    window.addEventListener("hashchange", () => {
      const row = document.getElementById(location.hash.slice(1));
      if (row && row.hidden && table.contains(row)) {
        field.value = "";
        update();
        row.scrollIntoView();
      }
    });
  }

  function mount(table) {
    if (table.dataset.ready) return;
    table.dataset.ready = "yes";
    Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading, column));
    });
    if (table.dataset.filter) addFilter(table);
    if (table.caption && table.dataset.hint) table.caption.append(". " + table.dataset.hint);
  }

  function mountAll() {
    document.querySelectorAll(".rl-sortable table").forEach(mount);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
})();
