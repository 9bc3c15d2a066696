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
    if (table.caption && table.dataset.hint) table.caption.append(". " + table.dataset.hint);
  }

  function mountAll() {
    document.querySelectorAll(".rl-sortable table").forEach(mount);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
})();
