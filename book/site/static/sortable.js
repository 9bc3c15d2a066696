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

  // Above the table: a field, and a button for each kind of row. Rows of that kind that hold all of the
  // words stay; a number is found with and without its commas. How many stay is said aloud.
  function addFilter(table) {
    const tools = table.parentElement.previousElementSibling; // its room is kept, so that nothing moves
    const label = document.createElement("label");
    const field = document.createElement("input");
    const said = document.createElement("output");
    field.type = "search";
    label.append(table.dataset.filter + " ", field);
    tools.append(label);
    const rows = Array.from(table.tBodies[0].rows, (row) => {
      const text = row.textContent.toLowerCase();
      return { row, kind: row.cells[0].textContent.toLowerCase(), text: text + " " + text.replace(/(\d),(?=\d{3})/g, "$1") };
    });
    const kinds = (table.dataset.kinds || "").split("|").filter(Boolean);
    let chosen = "";
    const update = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let kept = 0;
      for (const { row, kind, text } of rows) {
        row.hidden = !(kind.startsWith(chosen) && words.every((word) => text.includes(word)));
        kept += !row.hidden;
      }
      said.value = words.length || chosen ? `${kept} / ${rows.length}` : "";
    };
    const buttons = kinds.map((kind, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.addEventListener("click", () => choose(index));
      return button;
    });
    const choose = (index) => {
      chosen = index ? kinds[index].toLowerCase() : "";
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", at === index));
      update();
    };
    tools.append(...buttons, said);
    field.addEventListener("input", update);
    choose(0);
    // A link to one row shows it, whatever was typed.
    window.addEventListener("hashchange", () => {
      const row = document.getElementById(location.hash.slice(1));
      if (row && row.hidden && table.contains(row)) {
        field.value = "";
        choose(0);
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
    if (table.caption && table.dataset.hint) {
      const hint = document.createElement("small");
      hint.append(". " + table.dataset.hint);
      table.caption.append(hint);
    }
  }

  function mountAll() {
    document.querySelectorAll(".rl-sortable table").forEach(mount);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
})();
