/** Keyboard shortcuts. */

import { nextHit, previousHit } from "./find.js";
import { toggleStar } from "./annotations.js";
import { toggleFollowing } from "./live.js";
import { copyLink } from "./message_actions.js";
import { restoreSelection, select, selectedMessage } from "./selection.js";
import { openNeighbour, toggleSessionList } from "./session_list.js";
import { currentWindow, isSessionPage, loadWindow, sessionMain, windowElement } from "./transcript.js";

const { one, all, isShown, cycleChoice } = clewView;

const MESSAGES = ".w > article";
const PROMPTS = ".w > article.prompt";
const ROWS = "main .list > li > a, main .hits a, main table.wide tbody a";

/** Select the next or previous message, loading windows until one has such a message. */
async function moveToMessage(selector, step) {
  restoreSelection(false);
  let messages = all(selector, sessionMain()).filter(isShown);
  let target = clewView.stepFrom(messages, selectedMessage(), step);
  for (let number = currentWindow() + step; !messages[target] && windowElement(number); number += step) {
    await loadWindow(number);
    messages = all(selector, sessionMain()).filter(isShown);
    target = clewView.stepFrom(messages, selectedMessage(), step);
  }
  const article = clewView.clampedItem(messages, target);
  if (article) {
    article.scrollIntoView({ block: "start" });
    select(article);
  }
}

/** Focus the next or previous link of a list. */
function moveToRow(step) {
  const rows = all(ROWS).filter(isShown);
  const row = clewView.clampedItem(rows, rows.indexOf(document.activeElement) + step);
  if (row) {
    row.focus();
  }
}

function move(selector, step) {
  if (isSessionPage) {
    moveToMessage(selector, step);
  } else {
    moveToRow(step);
  }
}

function click(id) {
  const element = document.getElementById(id);
  if (element) {
    element.click();
  }
}

function focusSearch() {
  const field = one("#query") || one(".in-session input[type=search]") || one("#quick");
  if (field) {
    field.focus();
    field.select();
  }
}

const ACTIONS = {
  j: () => move(MESSAGES, 1),
  k: () => move(MESSAGES, -1),
  J: () => move(PROMPTS, 1),
  K: () => move(PROMPTS, -1),
  "[": () => openNeighbour(-1) || click("newer"),
  "]": () => openNeighbour(1) || click("older"),
  b: toggleSessionList,
  "/": focusSearch,
  "?": () => one("#keys").showModal(),
  t: () => cycleChoice("theme"),
  d: () => cycleChoice("diff"),
  g: () => click(one("#back") ? "back" : "graph"),
  f: toggleFollowing,
  G: () => click("end"),
  n: nextHit,
  N: previousHit,
  s: toggleStar,
  c: copyLink,
};

function onKey(event) {
  const inField = clewView.isTextField(event.target);
  if (inField && event.key === "Escape") {
    event.target.blur();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || inField || one("dialog:modal")) {
    return;
  }
  const level = clewView.detailRadio(event.key);
  if (level) {
    level.checked = true;
    level.dispatchEvent(new Event("change"));
  } else if (Object.hasOwn(ACTIONS, event.key)) {
    ACTIONS[event.key]();
  } else {
    return;
  }
  event.preventDefault();
}

export function initKeyboard() {
  addEventListener("keydown", onKey);
}
