// What the search page shows: each page once, with words of its prose around what was asked for.
(() => {
  const UNREAD = "noscript, script, style, pre, header, nav, button, svg, .headerlink, .solution, .cell_input, .rl-explorer, .rl-serve";
  const AROUND = 110; // characters kept on each side of the word

  const performed = Search._performSearch;
  // Results come with the best at the end.
  Search._performSearch = (...asked) => {
    const pages = new Set();
    const once = performed(...asked).reverse().filter(([page]) => !pages.has(page) && pages.add(page));
    return once.reverse();
  };

  const clip = (text, at) => {
    let from = Math.max(0, at - AROUND), to = Math.min(text.length, at + AROUND);
    if (from > 0) from = text.indexOf(" ", from) + 1;
    if (to < text.length) to = text.lastIndexOf(" ", to);
    return (from > 0 ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
  };

  Search.makeSearchSummary = (page, words, anchor) => {
    const main = new DOMParser().parseFromString(page, "text/html").querySelector('[role="main"]');
    if (!main) return "";
    main.querySelectorAll(UNREAD).forEach((element) => element.remove());
    const place = (anchor && main.querySelector(anchor)?.closest("dt, section")) || main;
    const texts = [...(place.matches("dt") ? place.parentElement : place).querySelectorAll("p, li, dd, td")]
      .map((element) => element.textContent.replace(/\s+/g, " ").trim()).filter((text) => text.length > 30);
    const sought = [...words].map((word) => word.toLowerCase());
    const hits = (text) => sought.filter((word) => text.toLowerCase().includes(word)).length;
    const best = texts.reduce((a, b) => (hits(b) > hits(a) ? b : a), texts[0] ?? "");
    const at = Math.min(...sought.map((word) => best.toLowerCase().indexOf(word)).filter((i) => i >= 0), best.length);
    const summary = document.createElement("p");
    summary.className = "context";
    summary.textContent = clip(best, at === best.length ? 0 : at);
    return summary;
  };
  // From disk a page can't read its neighbours: titles alone then.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
