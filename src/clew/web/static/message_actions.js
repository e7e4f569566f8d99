/**
 * A toolbar on the message that is hovered, focused or selected. Other modules add actions with `addMessageAction`.
 * Each message gets its toolbar, and the buttons that copy its code and output, when it is first hovered or focused;
 * the style sheet shows and hides them.
 */

import { copyFor } from "./clipboard.js";
import { addCopyButtons } from "./copy_blocks.js";
import { fetchText } from "./fragments.js";
import { deselect, selectedMessage } from "./selection.js";
import { messageNumber, sessionMain } from "./transcript.js";

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
/** What the pointer was pressed on, until the click that follows. */
let pressedOn = null;

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
  const index = messageNumber(article);
  return { index, article, url: `${sessionMain().dataset.session}#m${index}`, button };
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
  toolbar.append(closeButton());
  // Without a size of its own, it moves nothing in the header.
  const anchor = document.createElement("div");
  anchor.className = "message-actions-anchor";
  anchor.append(toolbar);
  one("header .n", article).before(anchor);
}

/** The style sheet shows it where the toolbar covers a part of the screen. */
function closeButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "close";
  button.textContent = "✕";
  button.setAttribute("aria-label", "Close");
  button.addEventListener("click", deselect);
  return button;
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
  if (article) {
    addCopyButtons(article);
  }
  if (article && !one(".message-actions", article)) {
    addToolbar(article);
    updatePressed(article);
  }
}

/** A tap on a message shows its buttons. The same tap must not click the one that came under the finger. */
function ignoreUnpressedButton(event) {
  const button = event.target.closest(".message-actions button, .copy-block button");
  if (button && pressedOn && !button.contains(pressedOn)) {
    event.stopPropagation();
  }
  pressedOn = null;
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
  sessionMain().addEventListener("pointerdown", (event) => (pressedOn = event.target), { capture: true });
  sessionMain().addEventListener("click", ignoreUnpressedButton, { capture: true });
}
