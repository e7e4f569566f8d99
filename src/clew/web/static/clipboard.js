/** Copies text, and says so. */

import { describeError } from "./fragments.js";

const CONFIRMATION_MS = 2500;

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

/** Says what was copied, at the lower edge of the screen, so that nothing moves. */
const status = document.createElement("p");
status.className = "copy-status";
status.setAttribute("role", "status");
document.body.append(status);
let confirmations = 0;

/**
 * Copy a text on behalf of a button, and confirm it on the button and to screen readers.
 * @param {HTMLElement | null} button
 * @param {string | Promise<string>} text
 * @param {string} what names the text in the confirmation
 */
export async function copyFor(button, text, what) {
  let outcome = `${what} copied`;
  try {
    await copyText(text);
    button?.classList.add("copied");
  } catch (error) {
    outcome = error.name === "NotAllowedError" ? "The browser did not allow copying." : describeError(error);
  }
  status.textContent = outcome;
  confirmations += 1;
  const number = confirmations;
  setTimeout(() => {
    button?.classList.remove("copied");
    if (number === confirmations) {
      status.textContent = "";
    }
  }, CONFIRMATION_MS);
}
