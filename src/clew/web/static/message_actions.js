/**
 * A toolbar on the message that is hovered, focused or selected. Other modules add actions with `addMessageAction`.
 * Each message gets its own toolbar when it is first hovered or focused; the style sheet shows and hides it.
 */

import { copyFor } from "./clipboard.js";
import { fetchText } from "./fragments.js";
import { selectedMessage } from "./selection.js";
import { sessionMain } from "./transcript.js";

const { one, all } = clewView;

const MESSAGE = ".w > article";

/**
 * @typedef {object} Message
 * @property {number} index
 * @property {HTMLElement} article
 * @property {string} url the address of the message, without the host
 * @property {HTMLButtonElement | null} button what was clicked; null for a key
 */

/**
 * @typedef {object} MessageAction
 * @property {string} label
 * @property {(message: Message) => void} perform
 * @property {(message: Message) => boolean} [isPressed] for an action that is switched on and off: its state
 */

/** @type {MessageAction[]} */
const actions = [];

/** @param {MessageAction} action */
export function addMessageAction(action) {
  actions.push(action);
}

/** Show the states of actions again, after they have changed. */
export function updateMessageActions() {
  all(".message-actions", sessionMain()).forEach((toolbar) => updatePressed(toolbar.closest(MESSAGE)));
}

/** @returns {Message} */
function describe(article, button = null) {
  // A message whose id was given to a result has a number nevertheless.
  const { hash } = one("header .n", article);
  return { index: Number(hash.slice(2)), article, url: sessionMain().dataset.session + hash, button };
}

function addToolbar(article) {
  const toolbar = document.createElement("div");
  toolbar.className = "message-actions";
  toolbar.setAttribute("role", "group");
  toolbar.setAttribute("aria-label", "Message actions");
  for (const action of actions) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action.label;
    button.addEventListener("click", () => {
      action.perform(describe(article, button));
      updatePressed(article);
    });
    toolbar.append(button);
  }
  // Without a size of its own, it moves nothing in the header.
  const place = document.createElement("div");
  place.className = "message-actions-place";
  place.append(toolbar);
  one("header .n", article).before(place);
}

function updatePressed(article) {
  const buttons = all(".message-actions button", article);
  actions.forEach((action, number) => {
    if (action.isPressed) {
      buttons[number].setAttribute("aria-pressed", String(action.isPressed(describe(article))));
    }
  });
}

function showToolbar(event) {
  const article = event.target.closest(MESSAGE);
  if (article && !one(".message-actions", article)) {
    addToolbar(article);
    updatePressed(article);
  }
}

/** Copy the address of the selected message, or of the session if none is selected. */
export function copyLink() {
  const article = selectedMessage();
  if (article) {
    copyMessageLink(describe(article));
  } else if (sessionMain()) {
    copyFor(null, location.origin + sessionMain().dataset.session, "Link");
  }
}

function copyMessageLink({ url, button }) {
  copyFor(button, location.origin + url, "Link");
}

function copyMarkdown({ index, button }) {
  copyFor(button, fetchText(`${sessionMain().dataset.session}/message/${index}.md`), "Markdown");
}

export function initMessageActions() {
  addMessageAction({ label: "Copy link", perform: copyMessageLink });
  addMessageAction({ label: "Copy as Markdown", perform: copyMarkdown });
  sessionMain().addEventListener("pointerover", showToolbar);
  sessionMain().addEventListener("focusin", showToolbar);
}
