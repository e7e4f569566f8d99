/**
 * The transcript of a session in windows of some messages each. Windows are loaded when they come near the screen, and
 * the oldest are removed when many are loaded.
 */

import { bindFragment, describeError, fetchPart, parseHtml } from "./fragments.js";
import { applyFolding, initFolding } from "./folding.js";
import { isSelectionFocused, restoreSelection, select, selectedMessage } from "./selection.js";

const { one, all } = clewView;

const MAX_LOADED_WINDOWS = 60;
const KEEP_WITHIN_PX = 4000;
const LOAD_WITHIN_PX = 1200;
const TYPICAL_SECTION_PX = 210;
const HOLD_PLACE_MS = 3000;
const HEADER_PX = 70;
const LINE_STEP_PX = 20;

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
/** How many sections each window shows at each level of detail; known when the outline was loaded. */
let sectionCounts = [];
/** The mean height of a section in pixels at each level of detail, as far as it was measured. */
const sectionHeights = [];

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

/** The number of the message that an article begins with. Its element id may belong to a tool result. */
export function messageNumber(article) {
  return Number(one("header .n", article).hash.slice(2));
}

/** The article that shows a message, or the next one if the message has nothing to show; null if it is not loaded. */
export function articleOf(index) {
  const element = document.getElementById(`m${index}`);
  if (element) {
    return element.closest("article");
  }
  const articles = all(":scope > article", windowElement(Math.floor((index - 1) / messagesPerWindow)) ?? main);
  return articles.find((article) => messageNumber(article) > index) || articles.at(-1) || null;
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
  element.classList.remove("blank");
  added.forEach((child) => {
    applyFolding(child);
    bindFragment(child);
  });
  clewView.updateBranches(element);
  clewView.markCurrentPromptSoon();
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
    element.replaceChildren();
    element.dataset.loaded = "";
    estimateHeight(element);
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
  element.dataset.first = String(number * messagesPerWindow + 1);
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

/** Scrolls to what is read. Windows loaded above it move it, so it is called again until the reader moves. */
let scrollToPlace = null;

export function holdPosition(scroll) {
  scrollToPlace = scroll;
  scroll();
  setTimeout(() => {
    if (scrollToPlace === scroll) {
      scrollToPlace = null;
    }
  }, HOLD_PLACE_MS);
}

function screenTop() {
  return parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
}

/** The selected message or the first part of a message that begins on the screen; if none does, what fills the screen. */
function placeOnScreen() {
  const { left, width } = main.getBoundingClientRect();
  const top = screenTop();
  const selected = selectedMessage();
  const selectedTop = selected && clewView.isShown(selected) ? selected.getBoundingClientRect().top : -1;
  if (selectedTop >= top && selectedTop < innerHeight) {
    return selected;
  }
  let filling = null;
  for (let y = top + LINE_STEP_PX; y < innerHeight; y += LINE_STEP_PX) {
    const found = document.elementFromPoint(left + width / 2, y);
    const part = found && found.closest("main article > *, main article");
    if (part && part.getBoundingClientRect().top >= top) {
      return part;
    }
    filling = filling || part;
  }
  return filling;
}

/** Change the page without moving what is read. A part that began above the screen may end there after the change. */
function keepPlace(change) {
  const part = placeOnScreen();
  const before = part && part.getBoundingClientRect().top;
  change();
  measureSections();
  estimateHeights();
  if (part) {
    holdPosition(() => {
      const { top, height } = part.getBoundingClientRect();
      const wanted = before + height < screenTop() ? screenTop() : before;
      scrollBy({ top: top - wanted, behavior: "instant" });
    });
  }
}

/** Where a message is shown; if the address names one of its tool results, that result. */
function elementOf(index) {
  const result = location.hash.startsWith(`#m${index}-`) && document.getElementById(location.hash.slice(1));
  return result || document.getElementById(`m${index}`);
}

/**
 * Load the window of a message and the one above it, then scroll to the message.
 * @returns {Promise<HTMLElement | null>} null if it was not found
 */
export async function showMessage(index) {
  const number = Math.floor((index - 1) / messagesPerWindow);
  await Promise.all([loadWindow(number), loadWindow(number - 1)]);
  // A message without a section of its own is shown in that of a call before it, which may be in a window above.
  for (let above = number - 1; above >= -1 && above > number - 4; above -= 1) {
    await loadWindow(above);
    const element = elementOf(index);
    if (!element) {
      continue;
    }
    clewView.reveal(element);
    estimateHeights();
    holdPosition(() => elementOf(index)?.scrollIntoView({ block: "start" }));
    return element;
  }
  return null;
}

/**
 * Scroll to a message and select it.
 * @returns {Promise<HTMLElement | null>} null if it was not found
 */
export async function goToMessage(index) {
  const element = await showMessage(index);
  select(element && element.closest("article"));
  return element;
}

/** The number of the message that the address names. */
function messageInAddress() {
  const match = /^#m(\d{1,9})(?:-\d{1,9})?$/.exec(location.hash);
  return match ? Number(match[1]) : null;
}

/** Go to the message that the address names, or say that there is none. */
async function followHash() {
  const index = messageInAddress();
  if (index === null) {
    return;
  }
  if (await goToMessage(index)) {
    main.dispatchEvent(new CustomEvent("messageshown", { detail: index }));
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
      [...element.children].forEach(applyFolding);
    }
  }
}

function detailLevel() {
  return all("input[name=detail]").findIndex((radio) => radio.checked);
}

/** The number of sections that a window shows now. Until the outline is loaded, it is that of the first window. */
function shownSections(number, level) {
  if (sectionCounts[number]) {
    return sectionCounts[number][level];
  }
  const hidden = ["l1", "l2", "l3"].slice(level);
  const first = windowElement(firstWindow);
  return [...first.children].filter((child) => !hidden.some((name) => child.classList.contains(name))).length;
}

/** Give a window that is not loaded the height that it will probably have. A window that shows nothing is left out. */
function estimateHeight(element) {
  const level = detailLevel();
  const count = shownSections(Number(element.dataset.w), level);
  element.style.minHeight = `${Math.round(count * (sectionHeights[level] || TYPICAL_SECTION_PX))}px`;
  element.classList.toggle("blank", count === 0);
}

function estimateHeights() {
  allWindows()
    .filter((element) => !isLoaded(element))
    .forEach(estimateHeight);
}

/** Measure the sections of the windows near the screen. The first paint does not wait for this. */
function measureSections() {
  const measured = [...nearby].filter(isLoaded);
  measured.forEach((element) => element.classList.add("measured"));
  const height = measured.reduce((sum, element) => sum + heightToNext(element), 0);
  const sections = measured.flatMap((element) => [...element.children]).filter(clewView.isShown);
  if (sections.length) {
    sectionHeights[detailLevel()] = height / sections.length;
    const content = sections.reduce((sum, section) => sum + contentHeight(section), 0) / sections.length;
    main.style.setProperty("--section-height", `${content}px`);
  }
  measured.forEach((element) => element.classList.remove("measured"));
}

/** The height of a window with the margin that separates it from the next one. */
function heightToNext(element) {
  const box = element.getBoundingClientRect();
  const next = element.nextElementSibling;
  return next && clewView.isShown(next) ? next.getBoundingClientRect().top - box.top : box.height;
}

function contentHeight(element) {
  const style = getComputedStyle(element);
  return element.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
}

export function setSectionCounts(counts) {
  sectionCounts = counts;
  measureSections();
  estimateHeights();
}

/** Show the place that was read before at the new level: its message, or the prompt above if that is hidden now. */
function onDetailChange() {
  const { message, prompt } = clewView.readingPosition();
  measureSections();
  estimateHeights();
  const article = message && document.getElementById(`m${message}`);
  if (article && clewView.isShown(article)) {
    showMessage(message);
  } else if (prompt) {
    showMessage(prompt);
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
  // First, so that another level has folded tool calls before sections are measured.
  initFolding(keepPlace);
  registerFirstWindow();
  estimateHeights();
  allWindows().forEach((element) => nearbyObserver.observe(element));
  all("input[name=detail]").forEach((radio) => radio.addEventListener("change", onDetailChange));
  new ResizeObserver(() => requestAnimationFrame(() => scrollToPlace?.())).observe(main);
  for (const type of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    addEventListener(
      type,
      () => {
        scrollToPlace = null;
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
}
