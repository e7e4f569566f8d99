/** Buttons that copy, the menu of actions, and the button that writes a session for another agent. */

import { copyFor } from "./clipboard.js";
import { describeError, fetchText, fill, postJson } from "./fragments.js";

const { one, all } = clewView;

const MENU_ITEMS = ".items a, .items button:not([hidden])";

function onClick(event) {
  const button = event.target.closest("[data-copy], [data-copyfrom]");
  if (button) {
    const { copy, copyfrom, what } = button.dataset;
    copyFor(button, copy ?? fetchText(copyfrom), what);
  } else if (event.target.closest("#write")) {
    writeSession(event.target.closest("#write"));
  }
  closeMenu(event.target);
}

/** Close the menu after a click elsewhere, and after an action in it. */
function closeMenu(target) {
  for (const menu of all("details.menu[open]")) {
    if (!menu.contains(target) || target.closest(MENU_ITEMS)) {
      menu.open = false;
    }
  }
}

/** Arrow keys move within the open menu; Escape closes it. */
function onKey(event) {
  const menu = event.target.closest("details.menu[open]");
  if (!menu) {
    return;
  }
  if (event.key === "Escape") {
    menu.open = false;
    one("summary", menu).focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const items = all(MENU_ITEMS, menu);
    const step = event.key === "ArrowDown" ? 1 : -1;
    clewView.clampedItem(items, items.indexOf(document.activeElement) + step)?.focus();
  } else {
    return;
  }
  event.preventDefault();
}

/** Write the session for another agent, and show what was written and how to continue. */
async function writeSession(button) {
  button.disabled = true;
  const { to, loss } = button.dataset;
  try {
    const { html } = await postJson(location.pathname + location.search, { to, allow_loss: loss === "1" });
    fill(one("#continued"), html);
    one("#news").textContent = "";
    one("#continued pre").focus();
  } catch (error) {
    one("#news").textContent = describeError(error);
    button.disabled = false;
  }
}

export function initActions() {
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
}
