/** Stars, labels and notes: of a session, of its messages, and the page that lists them all. */

import { describeError, fetchPart, fill, fillFrom, postJson } from "./fragments.js";
import { addMessageAction, updateMessageActions } from "./message_actions.js";
import { selectedMessage } from "./selection.js";
import { articleOf, messageNumber, sessionMain } from "./transcript.js";

const { one, all } = clewView;

const ACTION = "/annotations";
const CONFIRMATION_MS = 2500;
const NOT_SAVED = "Not saved yet. Save your changes, or Cancel to discard them.";
/** A request may have 64 KiB. */
const MAX_IMPORT_BYTES = 48 * 1024;

/** The element at the top of a session with its star, labels, note and marked messages. */
function summary() {
  return one("#annotations");
}

function markOf(index) {
  return one(`[data-message="${index}"]`, summary());
}

function announce(text) {
  const status = one("#news") || one("#imported");
  status.textContent = text;
  setTimeout(() => {
    if (status.textContent === text) {
      status.textContent = "";
    }
  }, CONFIRMATION_MS);
}

async function refreshSession() {
  const focused = document.activeElement && summary().contains(document.activeElement) ? document.activeElement.id : "";
  const wasOpen = one(".marked", summary())?.open;
  await fillFrom(summary(), summary().dataset.load);
  showName();
  showButtons();
  const marked = one(".marked", summary());
  if (marked && wasOpen) {
    marked.open = true;
  }
  if (focused) {
    document.getElementById(focused)?.focus();
  }
  placeMarks();
  updateMessageActions();
}

/** Star a message, or the session if no message is given, or remove its star. */
async function changeStar(message, isStarred) {
  try {
    await postJson(ACTION, { session: summary().dataset.key, message, starred: isStarred });
    await refreshSession();
  } catch (error) {
    announce(describeError(error));
    return;
  }
  const what = message === null ? "Session" : `Message ${message}`;
  announce(isStarred ? `${what} starred` : `Star of ${what.toLowerCase()} removed`);
}

function isMessageStarred(index) {
  return Boolean(markOf(index)?.dataset.starred);
}

/** Star the selected message, or the session if none is selected, or remove its star. */
export function toggleStar() {
  const button = one("#star");
  if (!button) {
    return;
  }
  const article = selectedMessage();
  if (article) {
    const index = messageNumber(article);
    changeStar(index, !isMessageStarred(index));
  } else {
    changeStar(null, button.getAttribute("aria-pressed") !== "true");
  }
}

/** Put a copy of each mark below the header of its message, in the windows that are loaded. */
function placeMarks() {
  all(".mark.placed", sessionMain()).forEach((mark) => mark.remove());
  for (const item of all("[data-message]", summary()).reverse()) {
    const article = articleOf(Number(item.dataset.message));
    const header = article && one("header", article);
    if (header) {
      const mark = one(".mark", item).cloneNode(true);
      mark.classList.add("placed");
      if (one(".n", header)?.hash === `#m${item.dataset.message}`) {
        one(".which", mark).remove();
      }
      header.after(mark);
    }
  }
}

/** Windows are loaded, replaced and removed while the user reads. */
function watchWindows() {
  const observer = new MutationObserver((changes) => {
    if (changes.some((change) => change.target === sessionMain())) {
      observeWindows();
    }
    placeMarks();
  });
  const observeWindows = () => all(".w", sessionMain()).forEach((element) => observer.observe(element, { childList: true }));
  observer.observe(sessionMain(), { childList: true });
  observeWindows();
}

/** The title may have been changed. */
function showName() {
  const name = one("[data-name]", summary())?.dataset.name;
  if (name && name !== one("#title").textContent) {
    one("#title").textContent = name;
    document.title = `${name} · clew`;
  }
}

function showButtons() {
  for (const button of all("#star, #annotate", summary())) {
    button.hidden = false;
  }
}

/** @returns {HTMLDialogElement} */
function formDialog() {
  const known = one("#annotation-dialog");
  if (known) {
    return known;
  }
  const dialog = document.createElement("dialog");
  dialog.id = "annotation-dialog";
  dialog.setAttribute("aria-labelledby", "annotation-title");
  document.body.append(dialog);
  dialog.addEventListener("cancel", (event) => warnOnce(event, dialog));
  addEventListener("beforeunload", (event) => {
    if (dialog.open && hasChanges(one("form", dialog))) {
      event.preventDefault();
    }
  });
  return dialog;
}

/** Escape does not discard what was typed until it is pressed again. */
function warnOnce(event, dialog) {
  const problem = one("#annotation-problem", dialog);
  if (hasChanges(one("form", dialog)) && problem.textContent !== NOT_SAVED) {
    event.preventDefault();
    problem.textContent = NOT_SAVED;
  }
}

/** What was changed in the form. */
function changesIn(form) {
  const { starred, note, title } = form.elements;
  const boxes = all('[name="label"]', form);
  const changes = {
    add_labels: boxes.filter((box) => box.checked && !box.defaultChecked).map((box) => box.value),
    remove_labels: boxes.filter((box) => !box.checked && box.defaultChecked).map((box) => box.value),
  };
  const newLabel = form.elements.new.value.trim();
  if (newLabel) {
    changes.add_labels.push(newLabel);
  }
  if (starred.checked !== starred.defaultChecked) {
    changes.starred = starred.checked;
  }
  if (!note.readOnly && note.value !== note.defaultValue) {
    changes.note = note.value;
  }
  if (title && !title.readOnly && title.value !== title.defaultValue) {
    changes.title = title.value;
  }
  return changes;
}

function hasChanges(form) {
  return Object.values(changesIn(form)).some((change) => !Array.isArray(change) || change.length);
}

/** Add the label in the field to the labels of the form, checked. */
function addLabel(form) {
  const field = form.elements.new;
  const text = field.value.trim();
  const choices = one(".choices", form);
  const known = all("label", choices).find((label) => label.textContent.trim().toLowerCase() === text.toLowerCase());
  const box = known ? one("input", known) : document.createElement("input");
  if (!known) {
    box.type = "checkbox";
    box.name = "label";
    box.value = text;
    const label = document.createElement("label");
    label.className = "check";
    label.append(box, ` ${text}`);
    choices.append(label);
  }
  box.checked = true;
  box.closest("label").scrollIntoView({ block: "nearest" });
  field.value = "";
}

/**
 * Open the form for a session, or for one of its messages.
 * @param {string} key of the session
 * @param {number | null} message
 * @param {() => Promise<void>} onSaved
 */
async function openForm(key, message, onSaved) {
  const dialog = formDialog();
  const query = new URLSearchParams({ session: key, ...(message === null ? {} : { message }) });
  try {
    fill(dialog, await (await fetchPart(`${ACTION}/form?${query}`)).text());
  } catch (error) {
    announce(describeError(error));
    return;
  }
  const form = one("form", dialog);
  form.addEventListener("submit", async (event) => {
    if (event.submitter?.value === "cancel") {
      return;
    }
    event.preventDefault();
    try {
      await postJson(ACTION, { session: key, message, ...changesIn(form) });
    } catch (error) {
      one("#annotation-problem", dialog).textContent = describeError(error);
      return;
    }
    dialog.close();
    await onSaved();
    announce("Saved");
  });
  form.addEventListener("input", () => {
    one("#annotation-problem", dialog).textContent = "";
  });
  form.elements.new.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing && event.target.value.trim()) {
      event.preventDefault();
      addLabel(form);
    }
  });
  form.elements.note.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      one("#annotation-save", dialog).click();
    }
  });
  dialog.showModal();
  form.elements.new.focus();
}

export function initAnnotations() {
  if (!one("#star")) {
    return;
  }
  showButtons();
  summary().addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.id === "star") {
      changeStar(null, button.getAttribute("aria-pressed") !== "true");
    } else if (button?.id === "annotate") {
      openForm(summary().dataset.key, null, refreshSession);
    }
  });
  addMessageAction({
    label: "Star",
    perform: ({ index }) => changeStar(index, !isMessageStarred(index)),
    isPressed: ({ index }) => isMessageStarred(index),
  });
  addMessageAction({
    label: "Edit labels and note",
    perform: ({ index }) => openForm(summary().dataset.key, index, refreshSession),
  });
  placeMarks();
  watchWindows();
}

/** Split the annotations of a file into parts that a request may have. */
function importParts(annotations) {
  const parts = [];
  let size = Infinity;
  for (const annotation of annotations) {
    const bytes = new TextEncoder().encode(JSON.stringify(annotation)).length + 1;
    if (size + bytes > MAX_IMPORT_BYTES) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1).push(annotation);
    size += bytes;
  }
  return parts;
}

async function importFile(file) {
  const status = one("#imported");
  let exported, parts;
  try {
    exported = JSON.parse(await file.text());
    parts = importParts(exported.annotations);
  } catch {
    status.textContent = "This is not an export of stars, labels and notes.";
    return;
  }
  const { clew_annotations, masked } = exported;
  const sums = { added: 0, changed: 0, unchanged: 0 };
  let problem = "";
  try {
    for (const part of parts) {
      const done = await postJson(`${ACTION}/import`, { clew_annotations, masked, annotations: part });
      Object.keys(sums).forEach((name) => (sums[name] += done[name]));
    }
  } catch (error) {
    problem = describeError(error);
  }
  // What was imported is shown, also if a later part failed.
  await refreshPage().catch(() => {});
  const counts = `${sums.added} added, ${sums.changed} changed, ${sums.unchanged} unchanged`;
  const isPartial = problem && sums.added + sums.changed > 0;
  status.textContent = isPartial ? `Not all was imported (${counts}): ${problem}` : problem || counts;
}

async function refreshPage() {
  const list = one("#annotated");
  await fillFrom(list, location.pathname + location.search);
  showEditButtons();
}

function showEditButtons() {
  all(".edit", one("#annotated")).forEach((button) => {
    button.hidden = false;
  });
}

/** The page of all stars, labels and notes. */
export function initAnnotatedPage() {
  if (!one("#annotated")) {
    return;
  }
  showEditButtons();
  one("#annotated").addEventListener("click", (event) => {
    const button = event.target.closest("button.edit");
    if (button) {
      const { key, message } = button.dataset;
      openForm(key, message ? Number(message) : null, refreshPage);
    }
  });
  const button = one("#import-annotations");
  const field = one("#import-file");
  button.hidden = false;
  button.addEventListener("click", () => field.click());
  field.addEventListener("change", async () => {
    if (field.files.length) {
      await importFile(field.files[0]);
      field.value = "";
    }
  });
}
