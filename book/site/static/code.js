// Code on the site: closed until a reader wants it, all of it with the switch, one cell with its button. The template
// has set the attribute before the page was painted.
(() => {
  const root = document.documentElement;
  // What is printed has no solutions unless they are asked for.
  if (new URLSearchParams(location.search).has("solutions")) root.dataset.solutions = "";
  for (const one of document.querySelectorAll("[data-code-switch]")) {
    one.checked = root.dataset.code === "open";
    one.addEventListener("change", () => {
      root.dataset.code = one.checked ? "open" : "closed";
      try { localStorage.setItem("code", root.dataset.code); } catch { /* for this page alone */ }
    });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".rl-code");
    if (!button) return;
    const open = button.parentElement.classList.toggle("rl-open");
    button.setAttribute("aria-expanded", String(open));
  });
})();
