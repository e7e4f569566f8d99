/** Copies text, and says so. */

import { describeError } from "./fragments.js";

const { one } = clewView;

const CONFIRMATION_MS = 1500;

/**
 * Copy a text, or one that is still being fetched. Browsers allow it only within a click or key press, and some only if
 * the copy begins before the text is there.
 * @param {string | Promise<string>} text
 */
export async function copyText(text) {
  if (!navigator.clipboard) {
    copyBySelection(await text);
    return;
  }
  if (typeof text === "string") {
    await navigator.clipboard.writeText(text);
    return;
  }
  const blob = text.then((fetched) => new Blob([fetched], { type: "text/plain" }));
  await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
}

/** Copy where the page comes from another machine without encryption: browsers have no clipboard interface there. */
function copyBySelection(text) {
  const field = document.createElement("textarea");
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  if (!isCopied) {
    throw new Error("The browser did not allow copying.");
  }
}

/**
 * Copy a text on behalf of a button, and confirm it on the button and to screen readers.
 * @param {HTMLElement | null} button
 * @param {string | Promise<string>} text
 * @param {string} what names the text in the confirmation
 */
export async function copyFor(button, text, what) {
  const status = one("#news") || one("#copied");
  try {
    await copyText(text);
  } catch (error) {
    say(status, error.name === "NotAllowedError" ? "The browser did not allow copying." : describeError(error));
    return;
  }
  const confirmation = `${what} copied`;
  say(status, confirmation);
  button?.classList.add("copied");
  setTimeout(() => {
    button?.classList.remove("copied");
    if (status && status.textContent === confirmation) {
      status.textContent = "";
    }
  }, CONFIRMATION_MS);
}

function say(status, text) {
  if (status) {
    status.textContent = text;
  }
}
