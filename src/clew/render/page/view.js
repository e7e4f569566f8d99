
"use strict";
// What pages on their own and the app have in common.
const clewView = (() => {
  const one = (s, root = document) => root.querySelector(s), all = (s, root = document) => [...root.querySelectorAll(s)];
  const shown = (el) => el.getClientRects().length > 0;

  // Choices are remembered; from disk a browser may refuse to.
  const keep = { get: (k) => { try { return localStorage.getItem(k); } catch { return null; } },
    set: (k, v) => { try { localStorage.setItem(k, v); } catch { /* nothing to keep it in */ } } };
  const remember = (...names) => names.forEach((name) => {
    const was = keep.get("clew-" + name), radio = was && document.getElementById(was);
    if (radio && radio.name === name) radio.checked = true;
    all(`input[name=${name}]`).forEach((el) => el.addEventListener("change", () => keep.set("clew-" + name, el.id)));
  });
  const cycle = (name) => {
    const radios = all(`input[name=${name}]`), next = radios[(radios.findIndex((r) => r.checked) + 1) % radios.length];
    if (next) { next.checked = true; next.dispatchEvent(new Event("change")); }
  };

  // Branches: of every fork one way is shown.
  const above = new Map(), ways = new Map(), picked = new Set();
  const fork = (at, roots) => roots.forEach((r) => { above.set(r, at); ways.set(r, roots); });
  const pick = (roots) => roots.forEach((b) => picked.add(b));
  const visible = (b) => { for (; b; b = above.get(b) || 0) if (!picked.has(b)) return false; return true; };
  // What a branch begins with is known when all is read: the tree has it, and the fork in the text is told.
  const name = (a) => {
    const known = a.dataset.named ? null : one(`.tree a[data-go="${Number(a.dataset.go)}"]`);
    if (known && known.hash === a.hash) { a.dataset.named = "1"; a.append(`: ${known.textContent}`); }
  };
  const paint = (root = document) => {
    if (!ways.size) return;
    all(".fork a[data-go]", root).forEach(name);
    all("article[data-b]", root).forEach((el) => el.classList.toggle("off", !visible(Number(el.dataset.b))));
    all(".fork a[data-go], .tree a[data-go]").forEach((a) => { const on = picked.has(Number(a.dataset.go));
      a.classList.toggle("now", on); a.setAttribute("aria-current", on ? "true" : "false"); });
  };
  const choose = (b) => {
    for (; b; b = above.get(b) || 0) { (ways.get(b) || []).forEach((r) => picked.delete(r)); picked.add(b); }
    paint();
  };

  // Folded things open for whoever comes to them.
  const reveal = (el) => {
    for (let up = el; up && up.tagName !== "MAIN"; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    const article = el.closest("article");
    if (article && article.classList.contains("off")) choose(Number(article.dataset.b));
    const need = Math.max(0, ...["l1", "l2", "l3"].map((l, n) => (el.closest("." + l) ? n + 1 : 0)));
    const radios = all("input[name=detail]"), now = radios.findIndex((r) => r.checked);
    if (radios[need] && now < need) radios[need].checked = true;
  };

  // Code gets its colours when it comes into view, and so does what was read from a file, by the file's name.
  const CODE = 'code[class^="x-"]', READ = ".c > dl + .r:not(.err) > pre.o:only-of-type";
  const read = (pre) => {
    const file = all("dl > div", pre.closest(".c")).find((el) => el.firstElementChild.textContent === "file");
    const kind = file && /\.(\w{1,9})$/.exec(file.lastElementChild.textContent);
    if (!kind || pre.childElementCount) return null;
    const code = document.createElement("code");
    code.className = `x-${kind[1].toLowerCase()}`;
    code.append(...pre.childNodes);
    pre.append(code);
    return code;
  };
  const ink = (el) => { const code = el.tagName === "PRE" ? read(el) : el; if (code) clewColour(code); };
  const painter = new IntersectionObserver((seen) => seen.forEach((e) => {
    if (e.isIntersecting) { painter.unobserve(e.target); ink(e.target); }
  }), { rootMargin: "300px" });
  const colour = (root = document) => all(`${CODE}, ${READ}`, root).forEach((el) => painter.observe(el));

  // On paper nothing can be opened.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("main details:not([open], [data-load])");
    folded.forEach((el) => { el.open = true; });
    all(`${CODE}, ${READ}`).forEach((el) => { if (shown(el)) ink(el); });
  });
  addEventListener("afterprint", () => folded.forEach((el) => { el.open = false; }));

  // The table of contents knows where one is.
  const entries = new Map();
  let last = null, moved = () => {};
  const passing = new IntersectionObserver((seen) => seen.forEach((e) => {
    if (!e.isIntersecting) return;
    if (last) last.classList.remove("here");
    last = entries.get(e.target.id);
    if (last) { last.classList.add("here"); moved(last); }
  }), { rootMargin: "0px 0px -70% 0px" });
  const pass = (root) => all("article.prompt", root).forEach((el) => passing.observe(el));
  const contents = (links, then = moved) => { entries.clear(); moved = then; links.forEach((a) => entries.set(a.hash.slice(1), a)); };

  // All that is folded opens and closes with one button.
  const folding = (button, selector) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.textContent === "Open all";
      all(selector).forEach((el) => { el.open = open; });
      button.textContent = open ? "Close all" : "Open all";
    });
  };

  // Where one stands in a list, and the place a step leads to from there; from nowhere it is what comes into view.
  const place = (list, here) => {
    const at = list.indexOf(here);
    if (at >= 0) return [at, at];
    const next = list.findIndex((el) => el.getBoundingClientRect().top > 70);
    return next < 0 ? [list.length - 1, list.length] : [next - 1, next];
  };
  const stepped = (list, here, by) => place(list, here)[by > 0 ? 0 : 1] + by;
  const clamped = (list, at) => list[Math.min(list.length - 1, Math.max(0, at))];
  const level = (key) => /^[1-4]$/.test(key) && document.getElementById("d" + (key - 1));
  const inField = (el) => /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) && el.type !== "radio";

  return { one, all, shown, remember, cycle, fork, pick, paint, choose, reveal, colour, pass, contents, folding, stepped, clamped, level, inField };
})();
