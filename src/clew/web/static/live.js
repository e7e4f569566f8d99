/** Keeps a session page up to date while its session grows, and loads the outline of prompts and branches. */

import { fillFrom } from "./fragments.js";
import { select } from "./selection.js";
import {
  allWindows,
  appendWindow,
  goToStart,
  holdPosition,
  isLoaded,
  loadWindow,
  refreshWindow,
  sessionMain,
  setSectionCounts,
  windowElement,
} from "./transcript.js";

const { one, all } = clewView;

const FIRST_PAINT_MAX_MS = 1000;

const followButton = one("#follow");
let isFollowing = false;
let stream = null;
let knownEtags = null;
let knownFacts = "";
let latestEvent = null;
let queue = Promise.resolve();

/** The active branch of each fork when the outline was loaded last, by the first branch of the fork. */
const activeBranches = new Map();

/** Show the active branches. What a reader chose stays until the conversation continues on another branch. */
function updateBranches(outline) {
  const active = new Set(JSON.parse(outline.dataset.active));
  const isFirst = !activeBranches.size;
  const changed = [];
  for (const [parent, roots] of JSON.parse(outline.dataset.forks)) {
    const branch = roots.find((root) => active.has(root));
    const state = `${roots}:${branch}`;
    clewView.addFork(parent, roots);
    if (branch && activeBranches.get(roots[0]) !== state) {
      changed.push(branch);
    }
    activeBranches.set(roots[0], state);
  }
  if (isFirst) {
    clewView.pickBranches(changed);
  } else {
    changed.forEach(clewView.chooseBranch);
  }
  clewView.updateBranches();
}

async function loadOutline() {
  const contents = one("#toc");
  try {
    await fillFrom(contents, contents.dataset.load);
  } catch {
    return;
  }
  const outline = one(".outline", contents);
  clewView.setContents(all("ol a", outline));
  setSectionCounts(JSON.parse(outline.dataset.sections));
  updateBranches(outline);
  const main = sessionMain();
  // The first window was rendered from the start of the file alone; later records may have changed it.
  if (main.dataset.partial && isLoaded(windowElement(0))) {
    delete main.dataset.partial;
    await loadWindow(0, true);
  }
}

/**
 * Show what has changed in the session.
 * @param {{messages: number, windows: string[], facts: string}} event the number of messages, the etags of all windows,
 *   and the facts as HTML
 */
async function onSessionChanged({ messages, windows, facts }) {
  if (facts !== knownFacts) {
    knownFacts = facts;
    one("#facts").innerHTML = facts;
  }
  const etags = windows.join();
  const previousEtags = knownEtags;
  if (etags === previousEtags) {
    return;
  }
  knownEtags = etags;
  const { dataset } = sessionMain();
  const added = messages - Number(dataset.messages);
  const oldCount = allWindows().length;
  dataset.messages = String(messages);
  for (let number = oldCount; number < windows.length; number += 1) {
    appendWindow(number);
  }
  if (added < 0) {
    location.reload();
    return;
  }
  for (const element of allWindows()) {
    await refreshWindow(element, windows[element.dataset.w]);
  }
  for (let number = oldCount; number < windows.length; number += 1) {
    await loadWindow(number);
  }
  if (added) {
    one("#news").textContent = `${added} new ${added === 1 ? "message" : "messages"}`;
  }
  // The first event may say only what the page shows already.
  if (added || previousEtags) {
    await loadOutline();
  }
  if (isFollowing) {
    scrollToEnd();
  }
}

function openStream() {
  if (document.hidden || stream) {
    return;
  }
  stream = new EventSource(`${sessionMain().dataset.session}/live`);
  // Events are handled one after the other; of several that wait, only the latest counts.
  stream.onmessage = (event) => {
    latestEvent = event;
    const handle = () => (event === latestEvent ? onSessionChanged(JSON.parse(event.data)) : null);
    queue = queue.then(handle, handle);
  };
}

function closeStream() {
  if (stream) {
    stream.close();
    stream = null;
  }
}

function scrollToEnd() {
  scrollTo({ top: document.documentElement.scrollHeight });
}

/** Scroll to the last message and select it. */
export async function goToEnd() {
  const number = allWindows().length - 1;
  await loadWindow(number);
  select(all("article", windowElement(number)).filter(clewView.isShown).at(-1));
  holdPosition(scrollToEnd);
}

function setFollowing(on) {
  isFollowing = on;
  followButton.setAttribute("aria-pressed", String(on));
  if (on) {
    goToEnd();
  }
}

export function toggleFollowing() {
  if (followButton) {
    setFollowing(!isFollowing);
  }
}

/** Resolve after the first paint, or after a second. */
function firstPaint() {
  return new Promise((resolve) => {
    if (document.hidden || !PerformanceObserver.supportedEntryTypes.includes("paint")) {
      resolve();
    }
    new PerformanceObserver(resolve).observe({ type: "paint", buffered: true });
    setTimeout(resolve, FIRST_PAINT_MAX_MS);
  });
}

export async function initLive() {
  followButton.hidden = false;
  followButton.addEventListener("click", toggleFollowing);
  one("#end").addEventListener("click", (event) => {
    event.preventDefault();
    goToEnd();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      closeStream();
    } else {
      openStream();
    }
  });
  await firstPaint();
  openStream();
  await loadOutline();
  goToStart();
}
