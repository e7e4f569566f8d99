"use strict";
(() => {
  const one = (s, root = document) => root.querySelector(s), all = (s, root = document) => [...root.querySelectorAll(s)];
  const shown = (el) => el.getClientRects().length > 0;
  const keep = { get: (k) => { try { return localStorage.getItem(k); } catch { return null; } },
    set: (k, v) => { try { localStorage.setItem(k, v); } catch { /* nothing to keep it in */ } } };

  // A part of a page, as HTML of the server's own making.
  const part = async (address, signal) => {
    const answer = await fetch(address, { headers: { "X-Clew": "1" }, signal });
    if (!answer.ok && answer.status !== 400) throw new Error(String(answer.status));
    return answer.text();
  };
  const fill = (el, html) => { el.innerHTML = html; enliven(el); };

  // Choices are remembered.
  for (const name of ["theme", "diff", "detail"]) {
    const was = keep.get("clew-" + name), radio = was && document.getElementById(was);
    if (radio && radio.name === name) radio.checked = true;
    all(`input[name=${name}]`).forEach((el) => el.addEventListener("change", () => keep.set("clew-" + name, el.id)));
  }
  const cycle = (name) => {
    const radios = all(`input[name=${name}]`), next = radios[(radios.findIndex((r) => r.checked) + 1) % radios.length];
    if (next) { next.checked = true; next.dispatchEvent(new Event("change")); }
  };
  const mask = one("#mask"), help = one("#help"), keys = one("#keys");
  mask.hidden = help.hidden = false;
  mask.addEventListener("click", () => {
    const on = mask.getAttribute("aria-pressed") === "true";
    document.cookie = `clew-redact=${on ? "none" : "secrets"}; path=/; samesite=strict`;
    location.reload();
  });
  help.addEventListener("click", () => keys.showModal());

  // Code gets its colours when it comes into view.
  const painter = new IntersectionObserver((seen) => seen.forEach((e) => {
    if (e.isIntersecting) { painter.unobserve(e.target); clewColour(e.target); }
  }), { rootMargin: "300px" });
  addEventListener("beforeprint", () => all('code[class^="x-"]').forEach((el) => shown(el) && clewColour(el)));

  // Things that load when they are opened, come again by themselves, or reload.
  const enliven = (root) => {
    all('code[class^="x-"]', root).forEach((el) => painter.observe(el));
    all("details[data-load]", root).forEach((el) => el.addEventListener("toggle", () => el.open && load(el)));
    all("[data-reload]", root).forEach((el) => setTimeout(() => again(el), Number(el.dataset.reload) * 1000));
    all("form.pick-record", root).forEach((form) => form.addEventListener("submit", (e) => {
      e.preventDefault();
      record(form.elements.message.value);
    }));
  };
  const load = async (el, query = "") => {
    if (el.dataset.done === "1" && !query) return;
    el.dataset.done = "1";
    const inside = one(".inside", el);
    try { fill(inside, await part(el.dataset.load + query)); } catch { inside.textContent = "This could not be loaded."; el.dataset.done = ""; }
  };
  const again = async (el) => {
    const holder = el.closest("#findings");
    if (!holder) { location.reload(); return; }
    try { fill(holder, await part(location.pathname + location.search)); } catch { setTimeout(() => again(el), 2000); }
  };
  all("[data-again]").forEach((el) => setInterval(async () => {
    if (document.hidden) return;
    try { const html = await part(el.dataset.again); if (el.dataset.was !== html) { el.dataset.was = html; fill(el, html); } } catch { /* the server has gone */ }
  }, 4000));

  // Forms that answer as one types.
  const typed = (form, target, field, wait, extra) => {
    let timer = 0, going = null;
    const ask = async () => {
      const words = new URLSearchParams([...new FormData(form)].filter(([, v]) => v !== ""));
      const address = form.getAttribute("action") + (words.size ? "?" + words : "");
      if (going) going.abort();
      going = new AbortController();
      history.replaceState(null, "", address);
      const began = performance.now();
      try {
        fill(target, await part(address + (words.size ? "&" : "?") + extra, going.signal));
        target.dataset.took = String(Math.round(performance.now() - began));
      } catch (error) { if (error.name !== "AbortError") target.textContent = "clew does not answer. Is it still running?"; }
    };
    const later = () => { clearTimeout(timer); timer = setTimeout(ask, wait); };
    // What is looked for inside sessions takes longer: it is asked for when it is there whole.
    form.addEventListener("input", (e) => { if (!/^(text|file)$/.test(e.target.name)) later(); });
    form.addEventListener("change", (e) => { if (/^(text|file)$/.test(e.target.name)) later(); });
    form.addEventListener("submit", (e) => { e.preventDefault(); clearTimeout(timer); ask(); });
  };
  const asking = one("#ask"), filters = one("#filters");
  if (asking) typed(asking, one("#hits"), one("#query"), 60, "typed=1");
  if (filters) typed(filters, one("#found"), null, 250, "");

  // The transcript: windows that are loaded when they come near, and let go when many are.
  const main = one("main[data-session]");
  const session = main && main.dataset.session, size = main && Number(main.dataset.size);
  const MANY = 30;
  const children = new Map();
  let order = [];
  const holder = (number) => one(`.w[data-w="${number}"]`);
  const isLoaded = (el) => el.dataset.done === "1";
  const take = (el, html) => {
    const made = document.createElement("template");
    made.innerHTML = html;
    const fresh = [...made.content.children], before = children.get(el.dataset.w) || [];
    const told = fresh.map((node) => node.outerHTML);
    if (before.length && el.children.length === before.length) {
      // What is there and did not change stays as the reader has left it.
      let at = 0;
      while (at < before.length && before[at] === told[at]) at += 1;
      [...el.children].slice(at).forEach((node) => node.remove());
      el.append(...fresh.slice(at));
    } else el.replaceChildren(...fresh);
    children.set(el.dataset.w, told);
    el.dataset.done = "1";
    el.style.minHeight = "";
    enliven(el);
    paint(el);
    all("article.prompt", el).forEach((node) => passing.observe(node));
  };
  const fetching = new Map();
  const want = (number, fresh = false) => {
    const el = holder(number);
    if (!el || (isLoaded(el) && !fresh)) return Promise.resolve();
    if (!fetching.has(number)) {
      const done = part(`${session}/window/${number}`).then((html) => {
        take(el, html);
        order = order.filter((n) => n !== number).concat(number);
        forget();
      }).catch(() => { one("#news").textContent = "clew does not answer. Is it still running?"; }).finally(() => fetching.delete(number));
      fetching.set(number, done);
    }
    return fetching.get(number);
  };
  const forget = () => {
    for (const number of order.slice(0, Math.max(0, order.length - MANY))) {
      const el = holder(number), box = el.getBoundingClientRect();
      if (box.bottom > -4000 && box.top < innerHeight + 4000) continue;
      el.style.minHeight = `${el.offsetHeight}px`;
      el.replaceChildren();
      el.dataset.done = "";
      children.delete(String(number));
      order = order.filter((n) => n !== number);
    }
  };
  const near = new IntersectionObserver((seen) => seen.forEach((e) => e.isIntersecting && want(Number(e.target.dataset.w))), { rootMargin: "1200px" });
  const entries = new Map();
  let last = null;
  const passing = new IntersectionObserver((seen) => seen.forEach((e) => {
    if (!e.isIntersecting) return;
    if (last) last.classList.remove("here");
    last = entries.get(e.target.id);
    if (last) { last.classList.add("here"); last.scrollIntoView({ block: "nearest" }); }
  }), { rootMargin: "0px 0px -70% 0px" });

  // Branches: of every fork one way is shown.
  const above = new Map(), ways = new Map(), picked = new Set();
  const visible = (b) => { for (; b; b = above.get(b) || 0) if (!picked.has(b)) return false; return true; };
  const paint = (root = document) => {
    if (!ways.size) return;
    all("article[data-b]", root).forEach((el) => el.classList.toggle("off", !visible(Number(el.dataset.b))));
    all(".fork a[data-go], .tree a[data-go]").forEach((a) => { const on = picked.has(Number(a.dataset.go));
      a.classList.toggle("now", on); a.setAttribute("aria-current", on ? "true" : "false"); });
  };
  const choose = (b) => {
    for (; b; b = above.get(b) || 0) { (ways.get(b) || []).forEach((r) => picked.delete(r)); picked.add(b); }
    paint();
  };
  const branch = (outline) => {
    for (const [at, roots] of JSON.parse(outline.dataset.forks)) roots.forEach((r) => { above.set(r, at); ways.set(r, roots); });
    JSON.parse(outline.dataset.chosen).forEach((b) => picked.add(b));
    paint();
  };

  // Deep links: the window of a message is loaded before it is gone to.
  const reveal = (el) => {
    for (let up = el; up && up !== main; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    const article = el.closest("article");
    if (article && article.classList.contains("off")) choose(Number(article.dataset.b));
    const need = Math.max(0, ...["l1", "l2", "l3"].map((l, n) => (el.closest("." + l) ? n + 1 : 0)));
    const radios = all("input[name=detail]"), now = radios.findIndex((r) => r.checked);
    if (radios[need] && now < need) radios[need].checked = true;
  };
  const goTo = async (index) => {
    const number = Math.floor((index - 1) / size);
    for (let at = number; at >= 0 && at > number - 4; at -= 1) {
      await want(at);
      const el = document.getElementById(`m${index}`);
      if (el) { reveal(el); el.scrollIntoView({ block: "start" }); select(el.closest("article")); return; }
    }
  };
  const followHash = () => { const at = /^#m(\d{1,9})$/.exec(location.hash); if (at && main) goTo(Number(at[1])); };

  // The message that is looked at.
  let here = null;
  const select = (el) => {
    if (!el || el === here) return;
    if (here) here.classList.remove("here");
    here = el;
    here.classList.add("here");
    here.tabIndex = -1;
    here.focus({ preventScroll: true });
    const panel = one("#panel-record");
    if (panel && panel.open && here.id) record(here.id.slice(1));
  };
  const record = (index) => {
    const panel = one("#panel-record");
    if (panel && /^\d{1,9}$/.test(index)) load(panel, "?message=" + index);
  };
  const move = async (selector, by) => {
    if (!main) { step(by); return; }
    let list = all(selector, main).filter(shown), at = list.indexOf(here);
    if (at < 0) {
      at = list.findIndex((el) => el.getBoundingClientRect().top > 70);
      at = by > 0 ? (at < 0 ? list.length : at) - 1 : at < 0 ? list.length : at;
    }
    if (list[at + by] === undefined) {
      const edge = here ? Number(here.closest(".w").dataset.w) : 0;
      for (let next = edge + by; holder(next) && next >= 0; next += by) {
        await want(next);
        list = all(selector, main).filter(shown);
        at = list.indexOf(here);
        if (list[at + by] !== undefined) break;
      }
    }
    const el = list[Math.min(list.length - 1, Math.max(0, at + by))];
    if (el) { el.scrollIntoView({ block: "start" }); select(el); }
  };
  const step = (by) => {
    const list = all("main .list > li > a, main .hits a, main table.wide tbody a").filter(shown);
    const at = list.indexOf(document.activeElement), el = list[Math.min(list.length - 1, Math.max(0, at + by))];
    if (el) el.focus();
  };

  // A session that grows.
  const news = one("#news"), follow = one("#follow");
  let known = main ? Number(main.dataset.messages) : 0, isFollowing = false, stream = null;
  const grew = async ({ messages, windows }) => {
    if (messages === known) return;
    const came = messages - known, was = all(".w").length;
    known = messages;
    one("#messages").textContent = messages.toLocaleString("en");
    for (let number = was; number < windows; number += 1) {
      const el = document.createElement("div");
      el.className = "w"; el.dataset.w = String(number);
      main.append(el); near.observe(el);
    }
    if (came < 0) { location.reload(); return; }
    if (isLoaded(holder(was - 1))) await want(was - 1, true);
    for (let number = was; number < windows; number += 1) await want(number);
    news.textContent = `${came} new ${came === 1 ? "message" : "messages"}`;
    outline();
    if (isFollowing) scrollTo({ top: document.documentElement.scrollHeight });
  };
  const listen = () => {
    if (document.hidden || stream) return;
    stream = new EventSource(`${session}/live`);
    stream.onmessage = (e) => grew(JSON.parse(e.data));
  };
  const setFollowing = (on) => {
    isFollowing = on;
    follow.setAttribute("aria-pressed", String(on));
    if (on) want(all(".w").length - 1).then(() => scrollTo({ top: document.documentElement.scrollHeight }));
  };
  const outline = async () => {
    const toc = one("#toc");
    try { fill(toc, await part(toc.dataset.load)); } catch { return; }
    entries.clear();
    all(".outline ol a", toc).forEach((a) => entries.set(a.hash.slice(1), a));
    branch(one(".outline", toc));
  };
  if (main) {
    all(".w", main).forEach((el) => { if (one("article, .divider, .none", el)) {
      children.set(el.dataset.w, [...el.children].map((node) => node.outerHTML));
      el.dataset.done = "1"; order.push(Number(el.dataset.w));
      all("article.prompt", el).forEach((node) => passing.observe(node));
    } });
    const first = all(".w", main).find(isLoaded), usual = first ? Math.max(600, first.offsetHeight) : 2000;
    all(".w", main).forEach((el) => { if (!isLoaded(el)) el.style.minHeight = `${usual}px`; near.observe(el); });
    follow.hidden = false;
    follow.addEventListener("click", () => setFollowing(!isFollowing));
    main.addEventListener("click", (e) => { const el = e.target.closest(".w > article"); if (el && !getSelection().toString() && !e.target.closest("a, summary, button")) select(el); });
    addEventListener("hashchange", followHash);
    document.addEventListener("click", (e) => {
      const link = e.target.closest('a[href*="#m"]');
      if (!link || link.pathname !== location.pathname) return;
      if (link.dataset.go) choose(Number(link.dataset.go));
      if (link.hash === location.hash) { e.preventDefault(); followHash(); }
    });
    document.addEventListener("visibilitychange", () => { if (document.hidden && stream) { stream.close(); stream = null; } else listen(); });
    const fold = one("#fold");
    fold.hidden = false;
    fold.addEventListener("click", () => {
      const open = fold.textContent === "Open all";
      all("details:not(.panel)", main).forEach((el) => { el.open = open; });
      fold.textContent = open ? "Close all" : "Open all";
    });
    outline().then(followHash);
    listen();
  }

  // Keys.
  const click = (id) => { const el = document.getElementById(id); if (el) el.click(); };
  const focusSearch = () => { const el = one("#query") || one("#quick"); if (el) { el.focus(); el.select(); } };
  addEventListener("keydown", (e) => {
    const inField = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) && e.target.type !== "radio";
    if (inField && e.key === "Escape") e.target.blur();
    if (e.ctrlKey || e.metaKey || e.altKey || inField || keys.open) return;
    const act = { j: () => move(".w > article", 1), k: () => move(".w > article", -1),
      J: () => move(".w > article.prompt", 1), K: () => move(".w > article.prompt", -1),
      "[": () => click("newer"), "]": () => click("older"), "/": focusSearch, "?": () => keys.showModal(),
      t: () => cycle("theme"), d: () => cycle("diff"), g: () => click(one("#back") ? "back" : "graph"),
      f: () => follow && setFollowing(!isFollowing) }[e.key];
    const level = /^[1-4]$/.test(e.key) && document.getElementById("d" + (e.key - 1));
    if (level) { level.checked = true; level.dispatchEvent(new Event("change")); } else if (act) act(); else return;
    e.preventDefault();
  });
  enliven(document);
})();
