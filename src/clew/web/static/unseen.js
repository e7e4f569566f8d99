/** What is new in a session since the reader was here last: a line above it, and a link to it. */

import { allWindows, isLoaded, messageNumber, sessionMain } from "./transcript.js";

const { one, all } = clewView;

const STORED_AS = "clew-seen";
const MAX_SESSIONS = 500;

/** How many messages each session had when it was read last, by its address, the latest last. */
export function loadCounts() {
  try {
    const counts = JSON.parse(localStorage.getItem(STORED_AS));
    return counts && typeof counts === "object" ? counts : {};
  } catch {
    return {};
  }
}

/** Remember the messages that the session has now. */
function saveCount() {
  const { session, messages } = sessionMain().dataset;
  const { [session]: _, ...others } = loadCounts();
  const kept = Object.entries(others).slice(1 - MAX_SESSIONS);
  try {
    localStorage.setItem(STORED_AS, JSON.stringify(Object.fromEntries([...kept, [session, Number(messages)]])));
  } catch {
    // Storage is full or refused: the next visit marks nothing.
  }
}

/** The first new message, if its window is loaded. */
function firstUnseen(seen) {
  const size = Number(sessionMain().dataset.size);
  for (const element of allWindows().filter((each) => Number(each.dataset.first) + size > seen + 1)) {
    const found = all(":scope > article", element).find((article) => messageNumber(article) > seen);
    if (found || !isLoaded(element)) {
      return found;
    }
  }
  return null;
}

/** The style sheet puts a line above the first new message. */
function markFirstUnseen(seen) {
  const first = firstUnseen(seen);
  all("article.first-unseen", sessionMain()).forEach((article) => article.classList.remove("first-unseen"));
  first?.classList.add("first-unseen");
}

function showLink(seen, count) {
  const link = one("#unseen");
  link.hash = `#m${seen + 1}`;
  link.textContent = `${count.toLocaleString("en")} new since your last visit`;
  link.hidden = false;
}

export function initUnseen() {
  const { session, messages } = sessionMain().dataset;
  const seen = Number(loadCounts()[session] || 0);
  const count = Number(messages) - seen;
  addEventListener("pagehide", saveCount);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      saveCount();
    }
  });
  if (seen > 0 && count > 0) {
    showLink(seen, count);
    markFirstUnseen(seen);
    new MutationObserver(() => markFirstUnseen(seen)).observe(sessionMain(), { childList: true, subtree: true });
  }
}
