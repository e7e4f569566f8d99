"use strict";
(() => {
  const { one, all, shown, cycle, paint, choose, reveal } = clewView;
  clewView.remember("theme", "diff", "detail");

  // A part of a page, as HTML of the server's own making.
  const answered = async (address, signal) => {
    const answer = await fetch(address, { headers: { "X-Clew": "1" }, signal });
    if (!answer.ok && answer.status !== 400) throw new Error(said(await answer.text()) || SILENT);
    return answer;
  };
  const part = async (address, signal) => (await answered(address, signal)).text();
  // What a page of the server's says of a trouble.
  const said = (html) => {
    const made = document.createElement("template");
    made.innerHTML = html;
    const words = one("main > p", made.content);
    return words && words.textContent;
  };
  const SILENT = "clew does not answer. Is it still running?";
  // A browser that got no answer throws an error of its own.
  const trouble = (error) => (error instanceof TypeError ? SILENT : error.message);
  const fill = (el, html) => { el.innerHTML = html; enliven(el); };

  const mask = one("#mask"), help = one("#help"), keys = one("#keys");
  mask.hidden = help.hidden = false;
  mask.addEventListener("click", () => {
    const on = mask.getAttribute("aria-pressed") === "true";
    document.cookie = `clew-redact=${on ? "none" : "secrets"}; path=/; samesite=strict`;
    location.reload();
  });
  help.addEventListener("click", () => keys.showModal());

  // Things that load when they are opened, come again by themselves, or reload.
  const enliven = (root) => {
    clewView.colour(root);
    all("details[data-load]", root).forEach((el) => {
      el.addEventListener("toggle", () => el.open && load(el));
      if (el.open) load(el);
    });
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

  // Of what is wider than the screen, the latest days are shown.
  all(".scroll:has(> .heat)").forEach((el) => { el.scrollLeft = el.scrollWidth; });

  // Where a long text is cut, a link brings what comes behind.
  document.addEventListener("click", async (e) => {
    const link = e.target.closest("a[data-more]");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    const made = document.createElement("template");
    try { made.innerHTML = await part(link.getAttribute("href")); } catch { link.textContent = "This could not be loaded; try again."; return; }
    const came = made.content.firstElementChild;
    link.replaceWith(made.content);
    came.focus({ preventScroll: true });
  });

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
      } catch (error) { if (error.name !== "AbortError") target.textContent = trouble(error); }
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
  const MANY = 60, USUAL = 210;
  const children = new Map();
  let order = [];
  const holder = (number) => one(`.w[data-w="${number}"]`);
  const isLoaded = (el) => el.dataset.done === "1";
  const take = (el, html, print) => {
    const made = document.createElement("template");
    made.innerHTML = html;
    const fresh = [...made.content.children], before = children.get(el.dataset.w) || [];
    const told = fresh.map((node) => node.outerHTML), isHeld = here && here.contains(document.activeElement);
    let came = fresh;
    if (before.length && el.children.length === before.length) {
      // What is there and did not change stays as the reader has left it.
      const [from, behind] = alike(before, told), old = [...el.children];
      came = fresh.slice(from, fresh.length - behind);
      old.slice(from, old.length - behind).forEach((node) => node.remove());
      if (from) old[from - 1].after(...came); else el.prepend(...came);
    } else el.replaceChildren(...fresh);
    children.set(el.dataset.w, told);
    el.dataset.done = "1";
    el.dataset.etag = print;
    el.style.minHeight = "";
    came.forEach(enliven);
    paint(el);
    clewView.pass(el);
    find(isHeld);
  };
  // How many are the same at the beginning of two lists, and how many at their end.
  const alike = (before, now) => {
    const most = Math.min(before.length, now.length);
    let from = 0, behind = 0;
    while (from < most && before[from] === now[from]) from += 1;
    while (behind < most - from && before.at(-1 - behind) === now.at(-1 - behind)) behind += 1;
    return [from, behind];
  };
  const fetching = new Map();
  const want = (number, fresh = false) => {
    const el = holder(number);
    if (!el || (isLoaded(el) && !fresh)) return Promise.resolve();
    if (!fetching.has(number)) {
      const done = answered(`${session}/window/${number}`).then(async (answer) => {
        take(el, await answer.text(), answer.headers.get("X-Clew-Etag"));
        order = order.filter((n) => n !== number).concat(number);
        forget();
      }).catch((error) => { one("#news").textContent = trouble(error); }).finally(() => fetching.delete(number));
      fetching.set(number, done);
    }
    return fetching.get(number);
  };
  // Paper gets all of it: what is not here is fetched before the browser goes on, which it does only for this way to ask.
  const whole = () => all(".w", main).forEach((el) => {
    if (isLoaded(el)) return;
    const asked = new XMLHttpRequest();
    asked.open("GET", `${session}/window/${el.dataset.w}`, false);
    asked.setRequestHeader("X-Clew", "1");
    try { asked.send(); } catch { return; }
    if (asked.status === 200) { take(el, asked.responseText, asked.getResponseHeader("X-Clew-Etag")); order.push(Number(el.dataset.w)); }
  });
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
  const nearby = new Set();
  const near = new IntersectionObserver((seen) => seen.forEach((e) => {
    if (e.isIntersecting) { nearby.add(e.target); want(Number(e.target.dataset.w)); } else nearby.delete(e.target);
  }), { rootMargin: "1200px" });
  // A window that shows what is no more: it is taken anew, now or when it comes near.
  const renew = async (el, print) => {
    const number = Number(el.dataset.w);
    await fetching.get(number);
    if (!isLoaded(el) || el.dataset.etag === print) return;
    if (nearby.has(el)) await want(number, true); else el.dataset.done = "";
  };
  // What a reader has chosen stays so until the conversation takes another way.
  const taken = new Map();
  const branch = (outline) => {
    const active = new Set(JSON.parse(outline.dataset.active)), isFirst = !taken.size, other = [];
    for (const [at, roots] of JSON.parse(outline.dataset.forks)) {
      const way = roots.find((b) => active.has(b)), now = `${roots}:${way}`;
      clewView.fork(at, roots);
      if (way && taken.get(roots[0]) !== now) other.push(way);
      taken.set(roots[0], now);
    }
    if (isFirst) clewView.pick(other); else other.forEach(choose);
    paint();
  };

  // Deep links: the window of a message, and the one above it, are loaded before it is gone to. What comes above it
  // later moves it: until the reader does something it is brought back, and not for ever.
  const SETTLED = 3000;
  let aim = "";
  const hold = () => { const el = aim && document.getElementById(aim); if (el) el.scrollIntoView({ block: "start" }); };
  const goTo = async (index) => {
    const number = Math.floor((index - 1) / size);
    await Promise.all([want(number), want(number - 1)]);
    for (let at = number - 1; at >= -1 && at > number - 4; at -= 1) {
      await want(at);
      const el = document.getElementById(`m${index}`);
      if (!el) continue;
      reveal(el);
      aim = el.id;
      hold();
      select(el.closest("article"));
      setTimeout(() => { aim = aim === el.id ? "" : aim; }, SETTLED);
      return;
    }
  };
  const followHash = () => { const at = /^#m(\d{1,9})$/.exec(location.hash); if (at && main) goTo(Number(at[1])); return at; };
  ["wheel", "touchmove", "pointerdown", "keydown"].forEach((what) => addEventListener(what, () => { aim = ""; }, { capture: true, passive: true }));

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
  // The same message in what has come for it.
  const find = (isHeld) => {
    if (!here || here.isConnected) return;
    const el = here.id && document.getElementById(here.id);
    here = el ? el.closest("article") : null;
    if (!here) return;
    here.classList.add("here");
    here.tabIndex = -1;
    if (isHeld) here.focus({ preventScroll: true });
  };
  // The window that it is in, or the one that is seen.
  const edge = () => {
    const list = all(".w", main), el = here ? here.closest(".w") : list.find((w) => w.getBoundingClientRect().bottom > 70);
    return Number((el || list.at(-1)).dataset.w);
  };
  const record = (index) => {
    const panel = one("#panel-record");
    if (panel && /^\d{1,9}$/.test(index)) load(panel, "?message=" + index);
  };
  const move = async (selector, by) => {
    if (!main) { step(by); return; }
    find(false);
    let list = all(selector, main).filter(shown), next = clewView.stepped(list, here, by);
    if (list[next] === undefined) {
      for (let number = edge() + by; holder(number); number += by) {
        await want(number);
        list = all(selector, main).filter(shown);
        next = clewView.stepped(list, here, by);
        if (list[next] !== undefined) break;
      }
    }
    const el = clewView.clamped(list, next);
    if (el) { el.scrollIntoView({ block: "start" }); select(el); }
  };
  const step = (by) => {
    const list = all("main .list > li > a, main .hits a, main table.wide tbody a").filter(shown);
    const at = list.indexOf(document.activeElement), el = clewView.clamped(list, at + by);
    if (el) el.focus();
  };

  // A session that grows.
  const news = one("#news"), follow = one("#follow");
  let known = main ? Number(main.dataset.messages) : 0, isFollowing = false, stream = null, last = null, told = null, turn = Promise.resolve();
  const grew = async ({ messages, windows }) => {
    const came = messages - known, was = all(".w").length, before = told;
    told = windows.join();
    // Of the first that is told the page may know already.
    if (told === before) return;
    known = messages;
    one("#messages").textContent = messages.toLocaleString("en");
    for (let number = was; number < windows.length; number += 1) {
      const el = document.createElement("div");
      el.className = "w"; el.dataset.w = String(number);
      main.append(el); near.observe(el);
    }
    if (came < 0) { location.reload(); return; }
    for (const el of all(".w")) await renew(el, windows[el.dataset.w]);
    for (let number = was; number < windows.length; number += 1) await want(number);
    if (came) news.textContent = `${came} new ${came === 1 ? "message" : "messages"}`;
    if (came || before) await outline();
    if (isFollowing) scrollTo({ top: document.documentElement.scrollHeight });
  };
  const listen = () => {
    if (document.hidden || stream) return;
    stream = new EventSource(`${session}/live`);
    // One after the other, and of several that wait the last: it is what is to be shown.
    stream.onmessage = (e) => {
      last = e;
      const go = () => (e === last ? grew(JSON.parse(e.data)) : null);
      turn = turn.then(go, go);
    };
  };
  const setFollowing = (on) => {
    isFollowing = on;
    follow.setAttribute("aria-pressed", String(on));
    if (on) want(all(".w").length - 1).then(() => scrollTo({ top: document.documentElement.scrollHeight }));
  };
  const outline = async () => {
    const toc = one("#toc");
    try { fill(toc, await part(toc.dataset.load)); } catch { return; }
    clewView.contents(all(".outline ol a", toc), (a) => a.scrollIntoView({ block: "nearest" }));
    branch(one(".outline", toc));
    // What was shown before the session was read to its end may have become something else.
    if (main.dataset.partial && isLoaded(holder(0))) { delete main.dataset.partial; await want(0, true); }
  };
  // What stands beside the text, and what is still to come, waits until the text is seen, and not for ever.
  const seen = () => new Promise((done) => {
    if (document.hidden || !PerformanceObserver.supportedEntryTypes.includes("paint")) done();
    new PerformanceObserver(done).observe({ type: "paint", buffered: true });
    setTimeout(done, 1000);
  });
  if (main) {
    all(".w", main).forEach((el) => { if (one("article, .divider, .none", el)) {
      children.set(el.dataset.w, [...el.children].map((node) => node.outerHTML));
      el.dataset.done = "1"; order.push(Number(el.dataset.w));
      clewView.pass(el);
    } });
    // A guess: to measure one would hold up the first sight of the page.
    const first = all(".w", main).find(isLoaded), usual = Math.max(600, (first ? first.childElementCount : 10) * USUAL);
    all(".w", main).forEach((el) => { if (!isLoaded(el)) el.style.minHeight = `${usual}px`; near.observe(el); });
    // What is loaded, and what is measured when it comes into view, are both heard of here.
    new ResizeObserver(() => requestAnimationFrame(hold)).observe(main);
    follow.hidden = false;
    follow.addEventListener("click", () => setFollowing(!isFollowing));
    main.addEventListener("click", (e) => { const el = e.target.closest(".w > article"); if (el && !getSelection().toString() && !e.target.closest("a, summary, button")) select(el); });
    // Before all else: what is fetched is opened and coloured then, too.
    addEventListener("beforeprint", whole, { capture: true });
    addEventListener("afterprint", () => forget());
    addEventListener("hashchange", followHash);
    document.addEventListener("click", (e) => {
      const link = e.target.closest('a[href*="#m"]');
      if (!link || link.pathname !== location.pathname) return;
      if (link.dataset.go) choose(Number(link.dataset.go));
      if (link.hash === location.hash) { e.preventDefault(); followHash(); }
    });
    document.addEventListener("visibilitychange", () => { if (document.hidden && stream) { stream.close(); stream = null; } else listen(); });
    clewView.folding(one("#fold"), "main details");
    const begun = first ? Number(first.dataset.w) : 0;
    seen().then(() => { outline().then(() => followHash() || (begun && goTo(begun * size + 1))); listen(); });
  }

  // Keys.
  const click = (id) => { const el = document.getElementById(id); if (el) el.click(); };
  const focusSearch = () => { const el = one("#query") || one(".in-session input[type=search]") || one("#quick"); if (el) { el.focus(); el.select(); } };
  addEventListener("keydown", (e) => {
    const inField = clewView.inField(e.target);
    if (inField && e.key === "Escape") e.target.blur();
    if (e.ctrlKey || e.metaKey || e.altKey || inField || keys.open) return;
    const act = { j: () => move(".w > article", 1), k: () => move(".w > article", -1),
      J: () => move(".w > article.prompt", 1), K: () => move(".w > article.prompt", -1),
      "[": () => click("newer"), "]": () => click("older"), "/": focusSearch, "?": () => keys.showModal(),
      t: () => cycle("theme"), d: () => cycle("diff"), g: () => click(one("#back") ? "back" : "graph"),
      f: () => follow && setFollowing(!isFollowing) }[e.key];
    const level = clewView.level(e.key);
    if (level) { level.checked = true; level.dispatchEvent(new Event("change")); } else if (act) act(); else return;
    e.preventDefault();
  });
  enliven(document);
})();
