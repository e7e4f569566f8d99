/**
 * Words that are searched for in a session: they are marked wherever a window is loaded, and the reader goes from hit to
 * hit. The server knows which messages match and how the first of them spell the words.
 */

import { describeError, fetchPart } from "./fragments.js";
import { goToMessage, holdPosition, sessionMain, showMessage } from "./transcript.js";

const { one, all } = clewView;

const TYPING_DELAY_MS = 200;
const MARK_DELAY_MS = 50;
const MAX_MARKS_PER_WINDOW = 2000;
const SHARE_OF_SCREEN_ABOVE_HIT = 1 / 3;
/** Texts that are no part of a message. */
const NOT_SEARCHED = "article > header, .mark.placed, .c > summary > .call-facts, .peek, .more, .copy-block";
/** The line of a folded tool call, which repeats what is inside it. */
const REPEATED = ".c > summary > .call-target";
/** A phrase does not reach beyond one of these. */
const BLOCKS = "p, li, pre, td, th, dd, dt, h1, h2, h3, h4, h5, h6, summary, del, ins, div";
/** Scripts without spaces between words. */
const UNSPACED = "[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Hangul}]";

const strip = one("#find-strip");
const status = one("#find-status");
const field = one(".in-session input[type=search]");
const hasHighlights = "highlights" in CSS;

let query = "";
/** Numbers of the messages that match. */
let hits = [];
let current = -1;
let pattern = null;
let pending = null;
/** The marks in each window, in order. */
const marks = new Map();
const changedWindows = new Set();
let markTimer = 0;

/** A pattern that finds words as they are spelled. Between the words of a phrase may stand anything but letters. */
function patternOf(spellings) {
  const alternatives = spellings
    .map((spelling) => spelling.split(/[^\p{L}\p{N}\p{M}]+/u).filter(Boolean))
    .filter((words) => words.length)
    .map((words) => words.join("[^\\p{L}\\p{N}]+"))
    .sort((one, other) => other.length - one.length);
  if (!alternatives.length) {
    return null;
  }
  const start = `(?:(?=${UNSPACED})|(?<![\\p{L}\\p{N}]))`;
  const end = `(?:(?<=${UNSPACED})|(?![\\p{L}\\p{N}]))`;
  return new RegExp(`${start}(?:${alternatives.join("|")})${end}`, "giu");
}

const isSearched = (node) =>
  node.parentElement.closest(NOT_SEARCHED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;

/** The matches below an element, as ranges. A match may reach over several text nodes of one block. */
function findRanges(root) {
  const ranges = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, isSearched);
  let block = null;
  let nodes = [];
  const searchBlock = () => {
    for (const match of nodes.map((node) => node.data).join("").matchAll(pattern)) {
      if (ranges.length < MAX_MARKS_PER_WINDOW) {
        ranges.push(rangeIn(nodes, match.index, match.index + match[0].length));
      }
    }
  };
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const nodeBlock = node.parentElement.closest(BLOCKS);
    if (nodeBlock !== block) {
      searchBlock();
      nodes = [];
      block = nodeBlock;
    }
    nodes.push(node);
  }
  searchBlock();
  return ranges;
}

function rangeIn(nodes, start, end) {
  const range = new Range();
  let offset = 0;
  for (const node of nodes) {
    const [from, to] = [start - offset, end - offset];
    if (from >= 0 && from < node.length) {
      range.setStart(node, from);
    }
    if (to > 0 && to <= node.length) {
      range.setEnd(node, to);
      break;
    }
    offset += node.length;
  }
  return range;
}

/** Mark the words in the windows that have changed. */
function markWindows() {
  clearTimeout(markTimer);
  for (const element of changedWindows) {
    marks.set(element, pattern && element.isConnected ? findRanges(element) : []);
  }
  changedWindows.clear();
  if (hasHighlights) {
    CSS.highlights.set("hit", new Highlight(...[...marks.values()].flat()));
    const range = current >= 0 && rangeOfHit(hits[current]);
    CSS.highlights.set("now", new Highlight(...(range ? [range] : [])));
  }
}

function markAll() {
  marks.clear();
  all(".w", sessionMain()).forEach((element) => changedWindows.add(element));
  markWindows();
}

function onMutations(mutations) {
  if (!pattern) {
    return;
  }
  for (const { target } of mutations) {
    const element = target instanceof Element ? target.closest(".w") : null;
    if (element) {
      changedWindows.add(element);
    }
  }
  clearTimeout(markTimer);
  markTimer = setTimeout(markWindows, MARK_DELAY_MS);
}

/** The first mark in a message, if its window is loaded. */
function rangeOfHit(index) {
  const element = document.getElementById(`m${index}`);
  const next = hits.map((hit) => hit > index && document.getElementById(`m${hit}`)).find(Boolean);
  const isBefore = (node, range) =>
    Boolean(node.compareDocumentPosition(range.startContainer) & Node.DOCUMENT_POSITION_FOLLOWING);
  const isRepeated = (range) => range.startContainer.parentElement?.closest(REPEATED);
  const ranges = ((element && marks.get(element.closest(".w"))) || []).filter((range) => !isRepeated(range));
  return ranges.find((range) => isBefore(element, range) && !(next && isBefore(next, range)));
}

/** Scroll to the mark of a hit, once its message is shown. */
function showHit(number) {
  current = number;
  const index = hits[number];
  markWindows();
  const range = rangeOfHit(index);
  if (range) {
    clewView.reveal(range.startContainer.parentElement);
    holdPosition(() => scrollToRange(rangeOfHit(index)));
  }
  showStatus();
}

function scrollToRange(range) {
  if (!range) {
    return;
  }
  // Long output scrolls by itself.
  const scroller = range.startContainer.parentElement.closest("pre, .d");
  const inside = scroller && scroller.getBoundingClientRect();
  const place = range.getBoundingClientRect();
  if (inside && (place.top < inside.top || place.bottom > inside.bottom)) {
    scroller.scrollTop += place.top - inside.top - inside.height / 2;
  }
  const box = range.getBoundingClientRect();
  if (box.height) {
    scrollBy({ top: box.top - innerHeight * SHARE_OF_SCREEN_ABOVE_HIT, behavior: "instant" });
  }
}

/** Go to the next or previous hit; the first time, to the one at or behind the message that is read. */
async function step(direction) {
  if (!hits.length) {
    return;
  }
  let next = current + direction;
  if (current < 0) {
    const { message } = clewView.readingPosition();
    const behind = hits.findIndex((hit) => hit >= message);
    const first = behind < 0 ? hits.length : behind;
    next = direction > 0 ? first : first - 1;
  }
  const number = (next + hits.length) % hits.length;
  const searched = query;
  // Keep the focus in the search field; otherwise select the message.
  const element = await (document.activeElement === field ? showMessage(hits[number]) : goToMessage(hits[number]));
  if (searched === query && element) {
    showHit(number);
  }
}

export const nextHit = () => step(1);
export const previousHit = () => step(-1);

function showStatus(problem = "") {
  const noun = hits.length === 1 ? "hit" : "hits";
  const place = current >= 0 ? `${(current + 1).toLocaleString("en")} of ` : "";
  status.textContent = problem || (hits.length ? `${place}${hits.length.toLocaleString("en")} ${noun}` : "No hits");
  strip.hidden = !query;
  all("button.hit-step", strip).forEach((button) => {
    button.disabled = !hits.length;
  });
  one("#find-list").href = `/search?${new URLSearchParams({ session: strip.dataset.key, q: query })}`;
}

function setAddress() {
  const url = new URL(location.href);
  if (query) {
    url.searchParams.set("find", query);
  } else {
    url.searchParams.delete("find");
  }
  history.replaceState(history.state, "", url);
}

/** Search for something else. */
async function search(text) {
  pending?.abort();
  query = text.trim();
  hits = [];
  current = -1;
  pattern = null;
  let problem = "";
  if (query) {
    pending = new AbortController();
    try {
      const found = await fetchHits(query, pending.signal);
      hits = found.messages || [];
      pattern = patternOf(found.spellings || []);
      problem = found.problem;
    } catch (error) {
      if (error.name === "AbortError") {
        return;
      }
      problem = describeError(error);
    }
  }
  setAddress();
  markAll();
  showStatus(problem);
}

async function fetchHits(text, signal) {
  const parameters = new URLSearchParams({ q: text });
  const url = `${sessionMain().dataset.session}/hits?${parameters}`;
  const response = await fetchPart(url, signal);
  return response.json();
}

function clear() {
  field.value = "";
  search("");
}

function bindField() {
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search(field.value), TYPING_DELAY_MS);
  });
  field.form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("keydown", async (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      if (field.value.trim() !== query) {
        await search(field.value);
      }
      step(event.shiftKey ? -1 : 1);
    }
  });
}

export async function initFind() {
  bindField();
  one("#find-next").addEventListener("click", nextHit);
  one("#find-previous").addEventListener("click", previousHit);
  one("#find-clear").addEventListener("click", clear);
  new MutationObserver(onMutations).observe(sessionMain(), { childList: true, subtree: true });
  // A link led to a message: if it is a hit, its words are what the reader looks for.
  sessionMain().addEventListener("messageshown", ({ detail }) => {
    const number = hits.indexOf(detail);
    if (number >= 0) {
      showHit(number);
    }
  });
  if (strip.dataset.find) {
    await search(strip.dataset.find);
    const arrived = /^#m(\d{1,9})$/.exec(location.hash);
    const number = arrived ? hits.indexOf(Number(arrived[1])) : -1;
    if (number >= 0 && document.getElementById(`m${hits[number]}`)) {
      showHit(number);
    }
  }
}
