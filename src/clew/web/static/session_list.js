/**
 * The list of sessions beside the transcript, or in a drawer where there is no room for it. Rows are loaded while it is
 * scrolled, and again when the catalog has changed. `clewLayout` comes from layout.js, which restores the list.
 */

import { describeError, fetchPart, parseHtml } from "./fragments.js";
import { loadCounts } from "./unseen.js";

const { one, all } = clewView;

const MAX_REFRESHED_PAGES = 3;
const FILTER_DELAY_MS = 80;
const REFRESH_MS = 4000;
const LOAD_WITHIN_PX = 400;
const WIDE = matchMedia("(min-width: 86rem)");

const list = one("#session-list");
const content = list && one(".list-content", list);
const rows = list && one(".list-rows", list);
const filter = list && one("input[type=search]", list);
const toggleButton = one("#list-toggle");
const drawer = one("#list-drawer");

/** The number of rows that are loaded at once. */
const pageRows = list && Number(list.dataset.rows);

/** The state of the catalog that the rows show; "" before they are loaded. */
let state = list ? clewLayout.listState : "";
/** The request for rows that is under way: "reload", "edge" or "refresh", and what aborts it. */
let pending = null;

function isShown() {
  return WIDE.matches ? clewLayout.isListOpen() : drawer.open;
}

function url(params) {
  const query = { current: list.dataset.key, group: clewLayout.listGroup(), q: filter.value.trim(), ...params };
  const filled = Object.entries(query).filter(([, value]) => value !== "");
  return `/session-list?${new URLSearchParams(filled)}`;
}

const edgeObserver = list && new IntersectionObserver(
  (changes) => changes.filter((change) => change.isIntersecting).forEach((change) => loadEdge(change.target)),
  { root: rows, rootMargin: `${LOAD_WITHIN_PX}px` },
);

/**
 * Prepare rows that were put into the list.
 * @returns {HTMLElement | null} the row of this page
 */
function bindRows() {
  const counts = loadCounts();
  for (const link of all("li > a", rows)) {
    const seen = Number(counts[link.pathname] || 0);
    const added = Number(link.dataset.messages) - seen;
    const mark = one(".new", link);
    mark.hidden = !seen || added <= 0 || link.pathname === list.dataset.session;
    mark.textContent = `${added.toLocaleString("en")} new`;
  }
  edgeObserver.disconnect();
  all("[data-edge]", rows).forEach((edge) => edgeObserver.observe(edge));
  return clewLayout.markCurrentSession();
}

/**
 * Request rows, and abort the request before: its answer would be about other rows.
 * @returns {Promise<{rows: DocumentFragment, state: string}>} without rows if the list is as it was at `params.state`
 */
async function fetchRows(kind, params) {
  pending?.controller.abort();
  const request = { kind, controller: new AbortController() };
  pending = request;
  try {
    const response = await fetchPart(url(params), request.controller.signal);
    const html = await response.text();
    return { rows: parseHtml(html), state: response.headers.get("X-Clew-State") || state };
  } finally {
    if (pending === request) {
      pending = null;
    }
  }
}

/** Load the list anew, around the session of this page. */
async function reload() {
  try {
    const answer = await fetchRows("reload", {});
    rows.replaceChildren(answer.rows);
    state = answer.state;
    rows.scrollTop = 0;
    const current = bindRows();
    if (current && !filter.value.trim()) {
      clewLayout.showRow(current);
    }
    if (document.activeElement === rows) {
      current?.focus({ preventScroll: true });
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      rows.textContent = describeError(error);
    }
  }
}

/** Replace the link at the start or the end of the list by the rows that it stands for. */
async function loadEdge(edge) {
  // After another edge or list was loaded, the edges that are in view are loaded again.
  if (pending && pending.kind !== "refresh") {
    return;
  }
  const isEnd = edge.dataset.edge === "end";
  const from = Number(edge.dataset.from);
  const params = isEnd ? { from } : { from: Math.max(0, from - pageRows), rows: Math.min(pageRows, from) };
  try {
    const answer = await fetchRows("edge", params);
    keepScroll(() => joinRows(edge, answer.rows, isEnd));
  } catch {
    // It is loaded when it comes into view again.
  }
}

function joinRows(edge, fragment, isEnd) {
  one(`[data-edge=${isEnd ? "start" : "end"}]`, fragment)?.remove();
  const neighbour = isEnd ? edge.previousElementSibling : edge.nextElementSibling;
  const [first, second] = isEnd
    ? [neighbour, one("section", fragment)]
    : [all("section", fragment).at(-1), neighbour];
  edge.replaceWith(fragment);
  if (first && second && first.dataset.group === second.dataset.group) {
    one("ul", first).append(...one("ul", second).children);
    second.remove();
  }
}

/** Show what has changed in the catalog. The first row in view, the focus and what is unfolded stay as they are. */
async function refresh() {
  if (document.hidden || !isShown() || !state || pending) {
    return;
  }
  try {
    const answer = await fetchRows("refresh", { state, ...rowsAroundView() });
    if (answer.state !== state) {
      state = answer.state;
      keepScroll(() => replaceRows(answer.rows));
    }
  } catch {
    // Something else was asked for, or the server was stopped; the list stays as it is.
  }
}

/** The rows to refresh: all, or of many those around the view. The others are loaded again when they are scrolled to. */
function rowsAroundView() {
  const shown = all(":scope > section > ul > li", rows);
  const { top } = rows.getBoundingClientRect();
  const firstInView = shown.findIndex((row) => row.getBoundingClientRect().bottom > top);
  const count = Math.max(pageRows, Math.min(shown.length, MAX_REFRESHED_PAGES * pageRows));
  const skipped = Math.max(0, Math.min(firstInView - Math.floor(count / 2), shown.length - count));
  // New sessions move the last ones down.
  const added = one("[data-edge=end]", rows) ? 0 : pageRows;
  return { from: Number(one("[data-edge=start]", rows)?.dataset.from || 0) + skipped, rows: count + added };
}

function replaceRows(fragment) {
  const unfolded = new Map(all("details", rows).map((each) => [each.previousElementSibling.pathname, each.open]));
  for (const each of all("details", fragment)) {
    each.open = unfolded.get(each.previousElementSibling.pathname) ?? each.open;
  }
  const focused = rows.contains(document.activeElement) ? document.activeElement.pathname : "";
  rows.replaceChildren(fragment);
  all("li > a", rows).find((link) => link.pathname === focused)?.focus({ preventScroll: true });
}

/** Change the rows without moving what is in view. At the start of the list, new rows come into view. */
function keepScroll(change) {
  const isAtStart = rows.scrollTop === 0 && !one("[data-edge=start]", rows);
  const { top } = rows.getBoundingClientRect();
  const before = shownLinks()
    .map((link) => ({ path: link.pathname, box: link.getBoundingClientRect() }))
    .filter(({ box }) => box.bottom > top);
  change();
  bindRows();
  const after = new Map(shownLinks().map((link) => [link.pathname, link]));
  const kept = before.find(({ path }) => after.has(path));
  if (kept && !isAtStart) {
    rows.scrollTop += after.get(kept.path).getBoundingClientRect().top - kept.box.top;
  }
}

function openDrawer() {
  const { scrollTop } = rows;
  drawer.append(content);
  drawer.showModal();
  rows.scrollTop = scrollTop;
  const current = one("[aria-current]", rows);
  if (current) {
    clewLayout.showRow(current);
  }
  (current || rows).focus({ preventScroll: true });
}

function onDrawerClosed() {
  const { scrollTop } = rows;
  list.append(content);
  rows.scrollTop = scrollTop;
  updateToggle();
}

function updateToggle() {
  toggleButton.setAttribute("aria-expanded", String(isShown()));
}

/** Show or hide the list. */
export function toggleSessionList() {
  if (!list) {
    return;
  }
  if (WIDE.matches) {
    document.body.classList.toggle("with-list");
    clewLayout.saveListChoices();
    if (!isShown() && list.contains(document.activeElement)) {
      toggleButton.focus();
    }
  } else if (drawer.open) {
    drawer.close();
  } else {
    openDrawer();
  }
  updateToggle();
  if (isShown() && !state) {
    reload();
  }
}

/** The links of the list that are not folded away. */
function shownLinks() {
  return all("li > a", rows).filter((link) => !link.closest("details:not([open])"));
}

/**
 * Open the session above or below the current one in the list.
 * @param {number} step -1 or 1
 * @returns {boolean} false if no list is shown
 */
export function openNeighbour(step) {
  if (!list || !isShown() || !shownLinks().length) {
    return false;
  }
  followNeighbour(step);
  return true;
}

async function followNeighbour(step) {
  const edge = one(`[data-edge=${step > 0 ? "end" : "start"}]`, rows);
  let link = neighbourLink(step);
  if (!link && edge) {
    await loadEdge(edge);
    link = neighbourLink(step);
  }
  link?.click();
}

function neighbourLink(step) {
  const links = shownLinks();
  const current = links.findIndex((link) => link.getAttribute("aria-current"));
  return current < 0 ? links[0] : links[current + step];
}

/** Arrow keys go through the list; from the filter, down goes to the first row and Enter opens it. */
function onListKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isInFilter = event.target === filter;
  if (!step && !(event.key === "Enter" && isInFilter)) {
    return;
  }
  const links = shownLinks();
  if (event.key === "Enter") {
    links[0]?.click();
  } else {
    const target = isInFilter ? Math.max(0, step - 1) : links.indexOf(document.activeElement) + step;
    (target < 0 ? filter : links[target])?.focus();
  }
  event.preventDefault();
}

export function initSessionList() {
  if (!list) {
    return;
  }
  let timer = 0;
  toggleButton.hidden = false;
  toggleButton.addEventListener("click", toggleSessionList);
  one("#list-close").addEventListener("click", toggleSessionList);
  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(reload, FILTER_DELAY_MS);
  });
  filter.form.addEventListener("submit", (event) => event.preventDefault());
  all("input[name=group]", list).forEach((radio) =>
    radio.addEventListener("change", () => {
      clewLayout.saveListChoices();
      reload();
    }),
  );
  content.addEventListener("keydown", onListKey);
  drawer.addEventListener("close", onDrawerClosed);
  drawer.addEventListener("click", (event) => event.target === drawer && drawer.close());
  WIDE.addEventListener("change", () => {
    drawer.close();
    updateToggle();
    if (isShown() && !state) {
      reload();
    }
  });
  addEventListener("pagehide", () => state && clewLayout.saveList(state));
  updateToggle();
  if (!state && isShown()) {
    reload();
  }
  bindRows();
  setInterval(refresh, REFRESH_MS);
}
