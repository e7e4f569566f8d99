/**
 * The list of sessions beside the transcript, or in a drawer where there is no room for it. Rows are loaded while it is
 * scrolled, and again when the catalog has changed. `clewLayout` comes from layout.js, which restores the list.
 */

import { describeError, fetchPart, parseHtml } from "./fragments.js";

const { one, all } = clewView;

const ROWS = 60;
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

/** The state of the catalog that the rows show; "" before they are loaded. */
let state = list ? clewLayout.listState : "";
let pending = null;
/** Edges of the list that are being loaded. */
const loadingEdges = new WeakSet();

function isShown() {
  return WIDE.matches ? clewLayout.isListOpen() : drawer.open;
}

function url(params) {
  const query = { current: list.dataset.key, group: clewLayout.listGroup(), q: filter.value.trim(), ...params };
  const filled = Object.entries(query).filter(([, value]) => value !== "");
  return `/sidebar?${new URLSearchParams(filled)}`;
}

const edgeObserver = list && new IntersectionObserver(
  (changes) => changes.filter((change) => change.isIntersecting).forEach((change) => loadEdge(change.target)),
  { root: rows, rootMargin: `${LOAD_WITHIN_PX}px` },
);

function observeEdges() {
  edgeObserver.disconnect();
  all("[data-edge]", rows).forEach((edge) => edgeObserver.observe(edge));
}

/** Load the list anew, around the session of this page. */
async function reload() {
  pending?.abort();
  pending = new AbortController();
  try {
    const response = await fetchPart(url({}), pending.signal);
    rows.replaceChildren(parseHtml(await response.text()));
    state = response.headers.get("X-Clew-State") || "";
    rows.scrollTop = 0;
    const current = clewLayout.markCurrentSession();
    if (current && !filter.value.trim()) {
      clewLayout.showRow(current);
    }
    if (document.activeElement === rows) {
      current?.focus({ preventScroll: true });
    }
    observeEdges();
  } catch (error) {
    if (error.name !== "AbortError") {
      rows.textContent = describeError(error);
    }
  }
}

/** Replace the link at the start or the end of the list by the rows that it stands for. */
async function loadEdge(edge) {
  if (loadingEdges.has(edge)) {
    return;
  }
  loadingEdges.add(edge);
  const isEnd = edge.dataset.edge === "end";
  const from = Number(edge.dataset.from);
  const params = isEnd ? { from } : { from: Math.max(0, from - ROWS), rows: Math.min(ROWS, from) };
  try {
    const response = await fetchPart(url(params));
    const fragment = parseHtml(await response.text());
    if (edge.isConnected) {
      joinRows(edge, fragment, isEnd);
    }
  } catch {
    loadingEdges.delete(edge);
  }
}

function joinRows(edge, fragment, isEnd) {
  const fromBottom = rows.scrollHeight - rows.scrollTop;
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
  if (!isEnd) {
    rows.scrollTop = rows.scrollHeight - fromBottom;
  }
  clewLayout.markCurrentSession();
  observeEdges();
}

/** Show what has changed in the catalog. The place, the focus and what is unfolded stay as they are. */
async function refresh() {
  if (document.hidden || !isShown() || !state) {
    return;
  }
  const start = one("[data-edge=start]", rows);
  const count = all(":scope > section > ul > li", rows).length;
  const words = filter.value;
  try {
    const from = start ? start.dataset.from : 0;
    const response = await fetchPart(url({ state, from, rows: Math.max(ROWS, count) }));
    if (response.status === 204 || filter.value !== words) {
      return;
    }
    const fragment = parseHtml(await response.text());
    state = response.headers.get("X-Clew-State") || "";
    replaceRows(fragment);
  } catch {
    // The server was stopped; the list stays as it is.
  }
}

function replaceRows(fragment) {
  const unfolded = new Map(all("details", rows).map((each) => [each.previousElementSibling.pathname, each.open]));
  for (const each of all("details", fragment)) {
    each.open = unfolded.get(each.previousElementSibling.pathname) ?? each.open;
  }
  const focused = rows.contains(document.activeElement) ? document.activeElement.pathname : "";
  const { scrollTop } = rows;
  rows.replaceChildren(fragment);
  rows.scrollTop = scrollTop;
  clewLayout.markCurrentSession();
  all("li > a", rows).find((link) => link.pathname === focused)?.focus({ preventScroll: true });
  observeEdges();
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
  observeEdges();
  setInterval(refresh, REFRESH_MS);
}
