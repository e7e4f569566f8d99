/**
 * Parts of pages that are fetched as HTML: panels that load when they are opened, lists that refresh themselves,
 * and the rest of long texts. The server renders and escapes all of it.
 */

const { one, all } = clewView;

const POLL_MS = 4000;
const RETRY_MS = 2000;
const NO_ANSWER = "clew does not answer. Is it still running?";
const SIGNED_OUT = "clew was restarted. Open its new link, which it printed in your terminal, in another tab; then try again here.";

/**
 * Fetch a part of a page. A status of 400 is a part too: it explains what is wrong with the request.
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
export async function fetchPart(url, signal) {
  const response = await fetch(url, { headers: { "X-Clew": "1" }, signal });
  if (!response.ok && response.status !== 400) {
    throw refusal(response, errorText(await response.text()));
  }
  return response;
}

/** Fetch a text that is no page; rejected with the server's own text if it refuses. */
export async function fetchText(url) {
  const response = await fetch(url);
  const text = await response.text();
  if (!response.ok) {
    throw refusal(response, errorText(text));
  }
  return text;
}

/**
 * Ask the server to change something.
 * @param {string} url
 * @param {object} body
 * @returns {Promise<any>} the answer; rejected with the server's own text if it refuses
 */
export async function postJson(url, body) {
  const headers = { "X-Clew": "1", "Content-Type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw refusal(response, answer.error);
  }
  return answer;
}

async function fetchHtml(url, signal) {
  const response = await fetchPart(url, signal);
  return response.text();
}

/** The error of a request that the server refused. An open page is signed out only if the server was restarted. */
function refusal(response, text) {
  return new Error(response.status === 401 ? SIGNED_OUT : text || NO_ANSWER);
}

/** The text of an error page. */
function errorText(html) {
  const paragraph = one("main > p", parseHtml(html));
  return paragraph && paragraph.textContent;
}

/** What to tell the user about an error. A browser that got no answer throws a TypeError. */
export function describeError(error) {
  return error instanceof TypeError ? NO_ANSWER : error.message;
}

/**
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function parseHtml(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

export function fill(element, html) {
  element.innerHTML = html;
  bindFragment(element);
}

/** Fetch a part and put it into an element. */
export async function fillFrom(element, url, signal) {
  fill(element, await fetchHtml(url, signal));
}

/** Make the elements below a root work: buttons that need this script, code colours, panels, lists, reloads and the form that picks a record. */
export function bindFragment(root) {
  clewView.colourCode(root);
  all("[data-copy], [data-copyfrom], #write", root).forEach((button) => {
    button.hidden = false;
  });
  all("[data-poll]", root).forEach(poll);
  // A heatmap wider than the screen shows the latest days.
  for (const scroller of all(".scroll:has(> .heat)", root)) {
    scroller.scrollLeft = scroller.scrollWidth;
  }
  for (const details of all("details[data-load]", root)) {
    details.addEventListener("toggle", () => {
      if (details.open) {
        loadDetails(details);
      }
    });
    if (details.open) {
      loadDetails(details);
    }
  }
  for (const element of all("[data-reload]", root)) {
    setTimeout(() => reload(element), Number(element.dataset.reload) * 1000);
  }
  for (const form of all("form.pick-record", root)) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      showRecord(form.elements.message.value);
    });
  }
}

/** The last request of each panel. A new one aborts it, so that an early answer never replaces a later one. */
const panelRequests = new WeakMap();

/** Load the content of a panel, once unless it is asked for with a query. */
async function loadDetails(details, query = "") {
  if (details.dataset.loaded && !query) {
    return;
  }
  details.dataset.loaded = "1";
  panelRequests.get(details)?.abort();
  const request = new AbortController();
  panelRequests.set(details, request);
  const inside = one(".inside", details);
  try {
    await fillFrom(inside, details.dataset.load + query, request.signal);
  } catch (error) {
    if (error.name !== "AbortError") {
      inside.textContent = "This could not be loaded.";
      delete details.dataset.loaded;
    }
  }
}

/** Show the native record of a message in its panel. */
export function showRecord(message) {
  const panel = one("#panel-record");
  if (panel && /^\d{1,9}$/.test(message)) {
    loadDetails(panel, `?message=${message}`);
  }
}

/** Reload the findings of the secret scan, or the whole page. */
async function reload(element) {
  const findings = element.closest("#findings");
  if (!findings) {
    location.reload();
    return;
  }
  try {
    await fillFrom(findings, location.pathname + location.search);
  } catch {
    setTimeout(() => reload(element), RETRY_MS);
  }
}

/** Refresh an element every few seconds while it is on the page and the page is visible. */
function poll(element) {
  let shown = "";
  const timer = setInterval(async () => {
    if (!element.isConnected) {
      clearInterval(timer);
    }
    if (document.hidden || !element.isConnected) {
      return;
    }
    try {
      const html = await fetchHtml(element.dataset.poll);
      if (html !== shown) {
        shown = html;
        fill(element, html);
      }
    } catch {
      // The server was stopped; the page stays as it is.
    }
  }, POLL_MS);
}

/** What a page shows of the catalog, by the id of the element: as it came from the server, before scripts changed it. */
const catalogHtml = new Map(all("#sync, [data-refreshed]").map((element) => [element.id, element.innerHTML]));

let refreshing = null;

/** Bring the page up to date every few seconds until no running sync will change it. */
function refreshUntilComplete() {
  refreshing ??= refreshRepeatedly().finally(() => {
    refreshing = null;
  });
  return refreshing;
}

async function refreshRepeatedly() {
  for (let seconds = refreshSeconds(); seconds; seconds = refreshSeconds()) {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    if (!document.hidden) {
      await refreshFromCatalog();
    }
  }
}

function refreshSeconds() {
  const status = one("#sync");
  return status ? Number(status.dataset.refresh || 0) : 0;
}

async function refreshFromCatalog() {
  let page;
  try {
    const response = await fetch(location.href);
    page = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    return;
  }
  const status = one("#sync", page);
  if (!status) {
    return;
  }
  one("#sync").dataset.refresh = status.dataset.refresh || "";
  for (const [id, html] of catalogHtml) {
    const fresh = page.getElementById(id);
    if (fresh && fresh.innerHTML !== html) {
      catalogHtml.set(id, fresh.innerHTML);
      fill(document.getElementById(id), fresh.innerHTML);
    }
  }
}

/** The button that starts a sync shows that one runs, and what the page then says of the catalog is announced. */
function initSyncButton() {
  const button = one("#sync-now");
  if (!button) {
    return;
  }
  const status = one("#sync-status");
  button.hidden = false;
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled")) {
      return;
    }
    button.setAttribute("aria-disabled", "true");
    status.textContent = button.textContent = "Syncing …";
    try {
      await postJson("/sources/sync", {});
      await refreshFromCatalog();
      await refreshUntilComplete();
      status.textContent = one("#catalog-state").textContent;
    } catch (error) {
      one("#catalog-state").textContent = status.textContent = describeError(error);
    }
    button.removeAttribute("aria-disabled");
    button.textContent = "Sync now";
  });
}

/** Put the next part of a cut text where the link to it is; a line break sets the first link off. */
export function replaceMoreLink(link, content) {
  const before = link.previousSibling;
  if (before instanceof Text && before.data.endsWith("\n")) {
    before.data = before.data.slice(0, -1);
  }
  link.replaceWith(content);
}

/** Replace the link behind a cut text by the next part of the text. */
async function showMore(link) {
  let content;
  try {
    content = parseHtml(await fetchHtml(link.getAttribute("href")));
  } catch {
    link.textContent = "This could not be loaded; try again.";
    return;
  }
  const added = content.firstElementChild;
  replaceMoreLink(link, content);
  added.focus({ preventScroll: true });
}

export function initFragments() {
  refreshUntilComplete();
  initSyncButton();
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-more]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      showMore(link);
    }
  });
}
