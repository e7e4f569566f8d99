/** The selected message of a session page. */

import { showRecord } from "./fragments.js";

const { one } = clewView;

let selected = null;

/** @returns {HTMLElement | null} */
export function selectedMessage() {
  return selected;
}

export function isSelectionFocused() {
  return selected !== null && selected.contains(document.activeElement);
}

export function select(article) {
  if (!article || article === selected) {
    return;
  }
  deselect();
  mark(article);
  article.focus({ preventScroll: true });
  const recordPanel = one("#panel-record");
  if (recordPanel && recordPanel.open && article.id) {
    showRecord(article.id.slice(1));
  }
}

export function deselect() {
  if (selected) {
    selected.classList.remove("here");
    selected.blur();
    selected = null;
  }
}

/** Select the same message again after its window was replaced. */
export function restoreSelection(wasFocused) {
  if (!selected || selected.isConnected) {
    return;
  }
  const element = selected.id && document.getElementById(selected.id);
  const article = element ? element.closest("article") : null;
  selected = null;
  if (article) {
    mark(article);
    if (wasFocused) {
      article.focus({ preventScroll: true });
    }
  }
}

function mark(article) {
  selected = article;
  selected.classList.add("here");
  selected.tabIndex = -1;
}
