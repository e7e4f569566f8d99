
"use strict";
(() => {
  const one = (s) => document.querySelector(s), all = (s, root = document) => [...root.querySelectorAll(s)];
  const main = one("main"), root = document.documentElement;
  const shown = (el) => el.getClientRects().length > 0;

  // Choices are remembered; from disk a browser may refuse to.
  const keep = { get: (k) => { try { return localStorage.getItem(k); } catch { return null; } },
    set: (k, v) => { try { localStorage.setItem(k, v); } catch { /* nothing to keep it in */ } } };
  for (const name of ["theme", "diff"]) {
    const was = keep.get("clew-" + name), radio = was && document.getElementById(was);
    if (radio && radio.name === name) radio.checked = true;
    all(`input[name=${name}]`).forEach((el) => el.addEventListener("change", () => keep.set("clew-" + name, el.id)));
  }
  const cycle = (name) => {
    const radios = all(`input[name=${name}]`), next = radios[(radios.findIndex((r) => r.checked) + 1) % radios.length];
    if (next) { next.checked = true; next.dispatchEvent(new Event("change")); }
  };

  // Folded things open for whoever comes to them.
  const reveal = (el) => {
    for (let up = el; up && up !== main; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    const article = el.closest("article");
    if (article && article.classList.contains("off")) choose(Number(article.dataset.b));
    const need = Math.max(0, ...["l1", "l2", "l3"].map((l, n) => (el.closest("." + l) ? n + 1 : 0)));
    const radios = all("input[name=detail]"), now = radios.findIndex((r) => r.checked);
    if (radios[need] && now < need) radios[need].checked = true;
  };
  const go = (el) => { reveal(el); el.scrollIntoView({ block: "start" }); };
  const follow = () => { const el = location.hash.length > 1 && document.getElementById(location.hash.slice(1)); if (el) go(el); };

  // Branches: of every fork one way is shown.
  const above = new Map(), ways = new Map();
  all(".fork").forEach((fork) => {
    const article = fork.closest("article"), at = article && article.dataset.b;
    const roots = all("a[data-go]", fork).map((a) => Number(a.dataset.go));
    roots.forEach((r) => { above.set(r, at ? Number(at) : 0); ways.set(r, roots); });
  });
  all("a[data-go]").forEach((a) => a.addEventListener("click", () => choose(Number(a.dataset.go))));
  const picked = new Set(all(".fork a.now").map((a) => Number(a.dataset.go)));
  const visible = (b) => { for (; b; b = above.get(b) || 0) if (!picked.has(b)) return false; return true; };
  const paint = () => {
    all("article[data-b]").forEach((el) => el.classList.toggle("off", !visible(Number(el.dataset.b))));
    all(".fork a[data-go]").forEach((a) => { const on = picked.has(Number(a.dataset.go));
      a.classList.toggle("now", on); a.setAttribute("aria-current", on ? "true" : "false"); });
  };
  const choose = (b) => {
    for (; b; b = above.get(b) || 0) { (ways.get(b) || []).forEach((r) => picked.delete(r)); picked.add(b); }
    paint();
  };
  if (ways.size) paint();
  addEventListener("hashchange", follow);
  follow();

  // Search: every place is marked, the script opens what hides it.
  const field = one("#q"), hits = one("#hits"), MAX = 5000;
  let found = [], current = -1, timer = 0;
  const paintHits = () => {
    if (!("highlights" in CSS)) return;
    CSS.highlights.set("hit", new Highlight(...found.slice(0, MAX)));
    CSS.highlights.set("now", new Highlight(...(found[current] ? [found[current]] : [])));
  };
  const search = (value) => {
    found = []; current = -1;
    const word = value.toLowerCase();
    if (word.length > 1) {
      const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
      while (walk.nextNode() && found.length < MAX) {
        const node = walk.currentNode, hay = node.data.toLowerCase();
        for (let at = hay.indexOf(word); at >= 0 && found.length < MAX; at = hay.indexOf(word, at + word.length)) {
          if (at + word.length > node.length) break;
          const range = new Range(); range.setStart(node, at); range.setEnd(node, at + word.length); found.push(range);
        }
      }
    }
    hits.textContent = word.length > 1 ? (found.length >= MAX ? MAX + "+" : found.length) + " found" : "";
    paintHits();
  };
  const step = (by) => {
    if (!found.length) return;
    current = (current + by + found.length) % found.length;
    const el = found[current].startContainer.parentElement;
    reveal(el);
    el.scrollIntoView({ block: "center" });
    hits.textContent = `${current + 1} of ${found.length}`;
    paintHits();
  };
  if (field && main) {
    field.hidden = false;
    field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => search(field.value), 120); });
    field.addEventListener("keydown", (e) => {
      if (e.key === "Enter") { e.preventDefault(); if (!found.length) search(field.value); step(e.shiftKey ? -1 : 1); }
      if (e.key === "Escape") { field.value = ""; search(""); field.blur(); }
    });
  }

  // The index is filtered as one types.
  const filter = one("#filter");
  if (filter) {
    filter.hidden = false;
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      all(".list li").forEach((li) => { const t = li.textContent.toLowerCase(); li.hidden = !words.every((w) => t.includes(w)); });
      all(".list").forEach((list) => { list.parentElement.hidden = !all("li:not([hidden])", list).length; });
    });
  }

  // Code gets its colours when it comes into view; the page holds it plain.
  const colour = clewColour;
  const blocks = all('code[class^="x-"]');
  if (blocks.length && "IntersectionObserver" in window) {
    const watch = new IntersectionObserver((seen) => seen.forEach((e) => { if (e.isIntersecting) { watch.unobserve(e.target); colour(e.target); } }), { rootMargin: "300px" });
    blocks.forEach((el) => watch.observe(el));
  }
  addEventListener("beforeprint", () => blocks.forEach((el) => { if (shown(el)) colour(el); }));

  // Keys.
  const fold = one("#fold");
  const toggle = () => {
    const open = fold.textContent === "Open all";
    all("main details").forEach((el) => { el.open = open; });
    fold.textContent = open ? "Close all" : "Open all";
  };
  if (fold && one("main details")) { fold.hidden = false; fold.addEventListener("click", toggle); }
  let here = null;
  const move = (selector, by) => {
    const list = all(selector).filter(shown);
    if (!list.length) return;
    let at = list.indexOf(here);
    if (at < 0) { at = list.findIndex((el) => el.getBoundingClientRect().top > 70); at = by > 0 ? (at < 0 ? list.length : at) - 1 : at < 0 ? list.length : at; }
    if (here) here.classList.remove("here");
    here = list[Math.min(list.length - 1, Math.max(0, at + by))];
    here.classList.add("here");
    here.scrollIntoView({ block: "start" });
    here.tabIndex = -1; here.focus({ preventScroll: true });
  };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) && e.target.type !== "radio") return;
    const act = { j: () => move("main > article", 1), k: () => move("main > article", -1), J: () => move("main > article.prompt", 1), K: () => move("main > article.prompt", -1),
      "/": () => (field || filter) && (field || filter).focus(), "?": () => { const d = one("#keys"); if (d) d.showModal(); }, t: () => cycle("theme"), d: () => cycle("diff"), o: () => fold && toggle() }[e.key];
    const level = /^[1-4]$/.test(e.key) && document.getElementById("d" + (e.key - 1));
    if (level) level.checked = true; else if (act) act(); else return;
    e.preventDefault();
  });

  // The table of contents knows where one is.
  const entries = new Map(all(".toc a").map((a) => [a.hash.slice(1), a]));
  if (entries.size && "IntersectionObserver" in window) {
    let last = null;
    const watch = new IntersectionObserver((seen) => seen.forEach((e) => {
      if (!e.isIntersecting) return;
      if (last) last.classList.remove("here");
      last = entries.get(e.target.id); if (last) last.classList.add("here");
    }), { rootMargin: "0px 0px -70% 0px" });
    all("main > article.prompt").forEach((el) => watch.observe(el));
  }
})();
