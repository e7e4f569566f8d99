/**
 * The transcript of a session in windows of some messages each. Windows are loaded when they come near the screen, and
 * the oldest are removed when many are loaded.
 */

import { bindFragment, describeError, fetchPart, parseHtml } from "./fragments.js";
import { isSelectionFocused, restoreSelection, select, selectedMessage } from "./selection.js";

const { one, all } = clewView;

const MAX_LOADED_WINDOWS = 60;
const KEEP_WITHIN_PX = 4000;
const LOAD_WITHIN_PX = 1200;
const TYPICAL_MESSAGE_PX = 210;
const MIN_WINDOW_PX = 600;
const SCROLL_TARGET_MS = 3000;
const HEADER_PX = 70;

const main = one("main[data-session]");
const sessionUrl = main && main.dataset.session;
const messagesPerWindow = main && Number(main.dataset.size);

/** The HTML of each child of a loaded window, by the window's number, to find out which have changed. */
const childHtml = new Map();
/** Numbers of the loaded windows, in the order in which they were loaded. */
let loadOrder = [];
/** Requests under way, by the number of the window. */
const requests = new Map();
/** The number of the window that the page came with. */
let firstWindow = 0;
/** Windows near the screen. */
const nearby = new Set();

export const isSessionPage = Boolean(main);

export function sessionMain() {
  return main;
}

export function allWindows() {
  return all(".w", main);
}

export function windowElement(number) {
  return one(`.w[data-w="${number}"]`);
}

export function isLoaded(element) {
  return element.dataset.loaded === "1";
}

/**
 * Show the HTML of a window. Children that did not change stay, with whatever the reader has opened in them.
 * @param {HTMLElement} element
 * @param {string} html
 * @param {string} etag
 */
function applyWindow(element, html, etag) {
  const fresh = [...parseHtml(html).children];
  const freshHtml = fresh.map((child) => child.outerHTML);
  const oldHtml = childHtml.get(element.dataset.w) || [];
  const wasFocused = isSelectionFocused();
  let added = fresh;
  if (oldHtml.length && element.children.length === oldHtml.length) {
    const [start, end] = commonEnds(oldHtml, freshHtml);
    const old = [...element.children];
    added = fresh.slice(start, fresh.length - end);
    old.slice(start, old.length - end).forEach((child) => child.remove());
    if (start) {
      old[start - 1].after(...added);
    } else {
      element.prepend(...added);
    }
  } else {
    element.replaceChildren(...fresh);
  }
  childHtml.set(element.dataset.w, freshHtml);
  element.dataset.loaded = "1";
  element.dataset.etag = etag;
  element.style.minHeight = "";
  added.forEach(bindFragment);
  clewView.updateBranches(element);
  clewView.observePrompts(element);
  restoreSelection(wasFocused);
}

/**
 * How many items two lists have in common at their start, and at their end.
 * @returns {[number, number]}
 */
function commonEnds(before, after) {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) {
    start += 1;
  }
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) {
    end += 1;
  }
  return [start, end];
}

/**
 * Load a window, unless it is loaded or does not exist.
 * @param {number} number
 * @param {boolean} [again] also if it is loaded
 * @returns {Promise<void>}
 */
export function loadWindow(number, again = false) {
  const element = windowElement(number);
  if (!element || (isLoaded(element) && !again)) {
    return Promise.resolve();
  }
  if (!requests.has(number)) {
    const request = requestWindow(number, element).finally(() => requests.delete(number));
    requests.set(number, request);
  }
  return requests.get(number);
}

async function requestWindow(number, element) {
  try {
    const response = await fetchPart(`${sessionUrl}/window/${number}`);
    applyWindow(element, await response.text(), response.headers.get("X-Clew-Etag"));
  } catch (error) {
    one("#news").textContent = describeError(error);
    return;
  }
  loadOrder = loadOrder.filter((other) => other !== number).concat(number);
  evictWindows();
}

/** Remove the content of windows that were loaded long ago and are far from the screen. */
function evictWindows() {
  for (const number of loadOrder.slice(0, Math.max(0, loadOrder.length - MAX_LOADED_WINDOWS))) {
    const element = windowElement(number);
    const box = element.getBoundingClientRect();
    if (box.bottom > -KEEP_WITHIN_PX && box.top < innerHeight + KEEP_WITHIN_PX) {
      continue;
    }
    element.style.minHeight = `${element.offsetHeight}px`;
    element.replaceChildren();
    element.dataset.loaded = "";
    childHtml.delete(String(number));
    loadOrder = loadOrder.filter((other) => other !== number);
  }
}

/** Load all windows before the page is printed. The browser waits for synchronous requests only. */
function loadAllForPrint() {
  for (const element of allWindows()) {
    if (isLoaded(element)) {
      continue;
    }
    const request = new XMLHttpRequest();
    request.open("GET", `${sessionUrl}/window/${element.dataset.w}`, false);
    request.setRequestHeader("X-Clew", "1");
    try {
      request.send();
    } catch {
      continue;
    }
    if (request.status === 200) {
      applyWindow(element, request.responseText, request.getResponseHeader("X-Clew-Etag"));
      loadOrder.push(Number(element.dataset.w));
    }
  }
}

const nearbyObserver = new IntersectionObserver(
  (changes) => {
    for (const change of changes) {
      if (change.isIntersecting) {
        nearby.add(change.target);
        loadWindow(Number(change.target.dataset.w));
      } else {
        nearby.delete(change.target);
      }
    }
  },
  { rootMargin: `${LOAD_WITHIN_PX}px` },
);

/** Load a window again if it has changed: now if it is near the screen, else when it comes near. */
export async function refreshWindow(element, etag) {
  const number = Number(element.dataset.w);
  await requests.get(number);
  if (!isLoaded(element) || element.dataset.etag === etag) {
    return;
  }
  if (nearby.has(element)) {
    await loadWindow(number, true);
  } else {
    element.dataset.loaded = "";
  }
}

/** Add an empty window at the end of a session that has grown. */
export function appendWindow(number) {
  const element = document.createElement("div");
  element.className = "w";
  element.dataset.w = String(number);
  main.append(element);
  nearbyObserver.observe(element);
}

/** The number of the window with the selected message, or of the first window on the screen. */
export function currentWindow() {
  const windows = allWindows();
  const selected = selectedMessage();
  const element = selected
    ? selected.closest(".w")
    : windows.find((candidate) => candidate.getBoundingClientRect().bottom > HEADER_PX);
  return Number((element || windows.at(-1)).dataset.w);
}

/** The id of the message that a link led to. Windows loaded above it move it, so it is scrolled to again. */
let scrollTarget = "";

function keepScrollTarget() {
  const element = scrollTarget && document.getElementById(scrollTarget);
  if (element) {
    element.scrollIntoView({ block: "start" });
  }
}

/**
 * Load the window of a message and the one above it, then go to the message.
 * @returns {Promise<boolean>} false if it was not found
 */
async function goToMessage(index) {
  const number = Math.floor((index - 1) / messagesPerWindow);
  await Promise.all([loadWindow(number), loadWindow(number - 1)]);
  // A message without a section of its own is shown in that of a call before it, which may be in a window above.
  for (let above = number - 1; above >= -1 && above > number - 4; above -= 1) {
    await loadWindow(above);
    const element = document.getElementById(`m${index}`);
    if (!element) {
      continue;
    }
    clewView.reveal(element);
    scrollTarget = element.id;
    keepScrollTarget();
    select(element.closest("article"));
    setTimeout(() => {
      if (scrollTarget === element.id) {
        scrollTarget = "";
      }
    }, SCROLL_TARGET_MS);
    return true;
  }
  return false;
}

/** The number of the message that the address names. */
function messageInAddress() {
  const match = /^#m(\d{1,9})$/.exec(location.hash);
  return match ? Number(match[1]) : null;
}

/** Go to the message that the address names, or say that there is none. */
async function followHash() {
  const index = messageInAddress();
  if (index === null || (await goToMessage(index))) {
    return;
  }
  const last = Number(main.dataset.messages).toLocaleString("en");
  one("#news").textContent = `There is no message ${index.toLocaleString("en")}; the last is ${last}.`;
}

/** Go to the message in the address, or to the window with which the page came. */
export function goToStart() {
  if (messageInAddress() !== null) {
    followHash();
  } else if (firstWindow) {
    goToMessage(firstWindow * messagesPerWindow + 1);
  }
}

function registerFirstWindow() {
  for (const element of allWindows()) {
    if (one("article, .divider, .none", element)) {
      childHtml.set(
        element.dataset.w,
        [...element.children].map((child) => child.outerHTML),
      );
      element.dataset.loaded = "1";
      firstWindow = Number(element.dataset.w);
      loadOrder.push(firstWindow);
      clewView.observePrompts(element);
    }
  }
}

/** Give windows that are not loaded an estimated height; to measure one would delay the first paint. */
function estimateHeights() {
  const first = allWindows().find(isLoaded);
  const messages = first ? first.childElementCount : 10;
  const height = Math.max(MIN_WINDOW_PX, messages * TYPICAL_MESSAGE_PX);
  for (const element of allWindows()) {
    if (!isLoaded(element)) {
      element.style.minHeight = `${height}px`;
    }
    nearbyObserver.observe(element);
  }
}

function selectClicked(event) {
  const article = event.target.closest(".w > article");
  if (article && !getSelection().toString() && !event.target.closest("a, summary, button")) {
    select(article);
  }
}

function followLink(event) {
  const link = event.target.closest('a[href*="#m"]');
  if (!link || link.pathname !== location.pathname) {
    return;
  }
  if (link.dataset.go) {
    clewView.chooseBranch(Number(link.dataset.go));
  }
  if (link.hash === location.hash) {
    event.preventDefault();
    followHash();
  }
}

export function initTranscript() {
  registerFirstWindow();
  estimateHeights();
  new ResizeObserver(() => requestAnimationFrame(keepScrollTarget)).observe(main);
  for (const type of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    addEventListener(
      type,
      () => {
        scrollTarget = "";
      },
      { capture: true, passive: true },
    );
  }
  main.addEventListener("click", selectClicked);
  document.addEventListener("click", followLink);
  addEventListener("hashchange", followHash);
  // In the capture phase, so that windows are loaded before other listeners open and colour what is in them.
  addEventListener("beforeprint", loadAllForPrint, { capture: true });
  addEventListener("afterprint", evictWindows);
  clewView.bindFoldButton(one("#fold"), "main details");
}
