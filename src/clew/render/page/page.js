
"use strict";
(() => {
  const { one, all, shown, cycle, reveal } = clewView;
  const main = one("main");
  clewView.remember("theme", "diff");

  const go = (el) => { reveal(el); el.scrollIntoView({ block: "start" }); };
  const follow = () => { const el = location.hash.length > 1 && document.getElementById(location.hash.slice(1)); if (el) go(el); };

  all(".fork").forEach((fork) => {
    const article = fork.closest("article"), at = article && article.dataset.b;
    clewView.fork(at ? Number(at) : 0, all("a[data-go]", fork).map((a) => Number(a.dataset.go)));
  });
  all("a[data-go]").forEach((a) => a.addEventListener("click", () => clewView.choose(Number(a.dataset.go))));
  clewView.pick(all(".fork a.now").map((a) => Number(a.dataset.go)));
  clewView.paint();
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

  clewView.colour();

  // Keys.
  const fold = one("#fold");
  if (fold && one("main details")) clewView.folding(fold, "main details");
  let here = null;
  const move = (selector, by) => {
    const list = all(selector).filter(shown);
    if (!list.length) return;
    const next = clewView.clamped(list, clewView.stepped(list, here, by));
    if (here) here.classList.remove("here");
    here = next;
    here.classList.add("here");
    here.scrollIntoView({ block: "start" });
    here.tabIndex = -1; here.focus({ preventScroll: true });
  };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || clewView.inField(e.target)) return;
    const act = { j: () => move("main > article", 1), k: () => move("main > article", -1), J: () => move("main > article.prompt", 1), K: () => move("main > article.prompt", -1),
      "/": () => (field || filter) && (field || filter).focus(), "?": () => { const d = one("#keys"); if (d) d.showModal(); }, t: () => cycle("theme"), d: () => cycle("diff"), o: () => fold && fold.click() }[e.key];
    const level = clewView.level(e.key);
    if (level) level.checked = true; else if (act) act(); else return;
    e.preventDefault();
  });

  clewView.contents(all(".toc a"));
  clewView.pass(document);
})();
