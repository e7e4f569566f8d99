/**
 * What is open in a transcript. In long sessions tool calls are folded to one line each. Whatever the reader opened or
 * closed stays so when its window is loaded again.
 */

const { one, all } = clewView;

const FULL = "d3";
const ACTIONS = "d2";

const main = one("main[data-session]");
const isLong = Boolean(main && main.dataset.folded);

let areCallsOpen = !isLong;
/** Whether everything else is open: true or false after "Open all" or "Close all", null as it came from the server. */
let areOthersOpen = null;
/** What the reader opened or closed, by the keys of `keysOf`. */
const openByReader = new Map();
/** Whether an element is open unless the reader changes it. */
const openByDefault = new WeakMap();

/** The elements in a message that can be folded, each with a key that its copy in a later version has as well. */
function keysOf(article) {
  const counts = {};
  return all("details:not([data-load])", article).map((details) => {
    const kind = details.classList[0];
    counts[kind] = (counts[kind] || 0) + 1;
    return [details, `${article.id} ${kind} ${counts[kind]}`];
  });
}

/** Fold and unfold what is in a new message. */
export function applyFolding(article) {
  for (const [details, key] of keysOf(article)) {
    const isOpen = details.classList.contains("c") ? areCallsOpen : (areOthersOpen ?? details.open);
    openByDefault.set(details, isOpen);
    const wanted = openByReader.get(key) ?? isOpen;
    if (details.open !== wanted) {
      details.open = wanted;
    }
  }
}

function rememberToggle({ target }) {
  const article = target.closest(".w > article");
  const pair = article && keysOf(article).find(([details]) => details === target);
  if (!pair) {
    return;
  }
  if (target.open === openByDefault.get(target)) {
    openByReader.delete(pair[1]);
  } else {
    openByReader.set(pair[1], target.open);
  }
}

function refold() {
  openByReader.clear();
  all(".w > article", main).forEach(applyFolding);
}

/** In a long session, the level `full` opens tool calls, and the level `actions` folds them. */
function onLevelChosen({ target }) {
  if (isLong && (target.id === FULL || target.id === ACTIONS)) {
    areCallsOpen = target.id === FULL;
    refold();
  }
}

/** @param {(change: () => void) => void} keepPlace makes a change without moving what is read */
export function initFolding(keepPlace) {
  main.addEventListener("toggle", rememberToggle, { capture: true });
  all("input[name=detail]").forEach((radio) => radio.addEventListener("change", onLevelChosen));
  clewView.bindFoldButton(one("#fold"), (isOpen) => {
    areCallsOpen = isOpen;
    areOthersOpen = isOpen;
    keepPlace(refold);
  });
}
