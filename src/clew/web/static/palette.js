/**
 * The command palette: goes to a session, project, file or page, searches, and runs the actions of the page. The server
 * finds sessions, projects and files; actions are the elements of the page with `data-command`.
 */

import { describeError, fetchPart, parseHtml } from "./fragments.js";

const { one, all } = clewView;

const dialog = one("#palette");
const input = one("#palette-query");
const results = one("#palette-results");
const status = one("#palette-status");

let pending = null;
/** What each option that the server did not render does. */
const performers = new WeakMap();

/** @returns {{name: string, about: string, perform: () => void}[]} what can be done on this page, in its order */
function pageCommands() {
  const links = all("header.site nav a").map((link) => ({ name: link.textContent, about: "page", element: link }));
  const actions = all("[data-command]")
    .filter((element) => !element.closest("[hidden]") && !element.disabled)
    .map((element) => ({ name: element.dataset.command, about: "action", element }));
  const choices = all("fieldset.pick input[type=radio]:not(:checked)")
    .filter((radio) => radio.labels.length && !radio.closest("[hidden], #session-list, dialog"))
    .map((radio) => ({ name: choiceName(radio), about: "view", element: radio }));
  return [...actions, ...links, ...choices].map(({ name, about, element }) => ({
    name,
    about,
    perform: () => element.click(),
  }));
}

function choiceName(radio) {
  const legend = one("legend", radio.closest("fieldset"));
  return `${legend ? `${legend.textContent}: ` : ""}${radio.labels[0].textContent}`;
}

function matchingCommands(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length
    ? pageCommands().filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)))
    : [];
}

function commandOption({ name, about, perform }) {
  const option = document.createElement("div");
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  const spans = [name, about].map((text, index) => {
    const span = document.createElement("span");
    span.className = index ? "about" : "name";
    span.textContent = text;
    return span;
  });
  option.append(spans[0], " ", spans[1]);
  performers.set(option, perform);
  return option;
}

function commandGroup(commands) {
  const group = document.createElement("div");
  const heading = document.createElement("div");
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "Actions and pages");
  heading.className = "kind";
  heading.setAttribute("role", "presentation");
  heading.textContent = "Actions and pages";
  group.append(heading, ...commands.map(commandOption));
  return group;
}

/** Show the options from the server, with those of the page behind the sessions. */
function show(fragment, text) {
  const commands = matchingCommands(text);
  if (commands.length) {
    const sessions = one("[role=group][aria-label=Sessions]", fragment);
    const group = commandGroup(commands);
    if (sessions) {
      sessions.after(group);
    } else {
      fragment.prepend(group);
    }
  }
  results.replaceChildren(fragment);
  results.scrollTop = 0;
  const options = allOptions();
  options.forEach((option, index) => {
    option.id = `palette-option-${index}`;
  });
  status.textContent = `${options.length} ${options.length === 1 ? "result" : "results"}`;
  activate(options[0]);
}

function allOptions() {
  return all("[role=option]", results);
}

function activeOption() {
  return one("[role=option][aria-selected=true]", results);
}

function activate(option) {
  activeOption()?.setAttribute("aria-selected", "false");
  if (option) {
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  } else {
    input.removeAttribute("aria-activedescendant");
  }
}

async function update() {
  pending?.abort();
  const request = new AbortController();
  pending = request;
  const text = input.value.trim();
  const started = performance.now();
  try {
    const response = await fetchPart(`/palette${text ? `?${new URLSearchParams({ q: text })}` : ""}`, request.signal);
    const html = await response.text();
    if (pending === request) {
      show(parseHtml(html), text);
      results.dataset.took = String(Math.round(performance.now() - started));
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      show(document.createDocumentFragment(), text);
      status.textContent = describeError(error);
    }
  }
}

/** Do what the active option stands for. */
function run(option) {
  if (!option) {
    return;
  }
  const perform = performers.get(option);
  if (perform) {
    dialog.close();
    perform();
  } else {
    option.click();
  }
}

function onKey(event) {
  const options = allOptions();
  const index = options.indexOf(activeOption());
  const last = options.length - 1;
  const targets = {
    ArrowDown: index < last ? index + 1 : 0,
    ArrowUp: index > 0 ? index - 1 : last,
    PageDown: Math.min(last, index + 8),
    PageUp: Math.max(0, index - 8),
  };
  if (event.key === "Enter") {
    run(activeOption());
  } else if (Object.hasOwn(targets, event.key)) {
    activate(options[targets[event.key]]);
  } else {
    return;
  }
  event.preventDefault();
}

function toggle() {
  if (dialog.open) {
    dialog.close();
    return;
  }
  input.value = "";
  results.replaceChildren();
  dialog.showModal();
  input.focus();
  update();
}

export function initPalette() {
  const button = one("#palette-open");
  if (/Mac|iPhone|iPad/.test(navigator.platform)) {
    one("kbd", button).textContent = "⌘K";
  }
  button.hidden = false;
  button.addEventListener("click", toggle);
  input.addEventListener("input", update);
  input.addEventListener("keydown", onKey);
  results.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option && performers.has(option)) {
      run(option);
    } else if (option && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      dialog.close();
    }
  });
  results.addEventListener("pointermove", (event) => activate(event.target.closest("[role=option]") || activeOption()));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => pending?.abort());
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      toggle();
    }
  });
}
