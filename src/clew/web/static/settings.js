/** The settings page: every change is stored at once. */

import { describeError, fillFrom, postJson } from "./fragments.js";

const { one, all } = clewView;

/** Settings that replace the choice stored in this browser. */
const BROWSER_CHOICES = ["theme", "detail"];
/** Settings that change what the server shows. */
const NEEDS_RELOAD = ["timezone", "masking"];

function applyNow(name, value) {
  if (BROWSER_CHOICES.includes(name)) {
    clewView.forgetChoice(name);
  }
  if (name === "theme") {
    one(`#t${one("#setting-theme").selectedIndex}`).checked = true;
  } else if (name === "density") {
    document.body.classList.toggle("compact", value === "compact");
    document.body.classList.toggle("comfortable", value !== "compact");
  } else if (name === "masking") {
    document.cookie = "clew-redact=; path=/; samesite=strict; max-age=0";
  }
}

async function save(field) {
  const status = one("#settings .settings-status");
  try {
    await postJson("/settings", { changes: { [field.name]: field.value } });
  } catch (error) {
    field.setAttribute("aria-invalid", "true");
    status.textContent = describeError(error);
    return;
  }
  field.removeAttribute("aria-invalid");
  applyNow(field.name, field.value);
  status.textContent = "Saved.";
  if (NEEDS_RELOAD.includes(field.name)) {
    location.reload();
  }
}

/** Make the controls below an element usable; without a script they stay disabled. */
function enable(root) {
  all("fieldset", root).forEach((fieldset) => {
    fieldset.disabled = false;
  });
  all("[data-names], [data-project]", root).forEach((button) => {
    button.hidden = false;
  });
}

/** The last request of each part. A new one aborts it, so that an early answer never replaces a later one. */
const partRequests = new WeakMap();

/** Fetch a part of the section about projects, and make it usable. */
async function load(part, url) {
  partRequests.get(part)?.abort();
  const request = new AbortController();
  partRequests.set(part, request);
  part.setAttribute("aria-busy", "true");
  try {
    await fillFrom(part, url, request.signal);
    enable(part);
  } catch (error) {
    if (request.signal.aborted) {
      return;
    }
    part.textContent = describeError(error);
  }
  part.removeAttribute("aria-busy");
}

function loadSuggestions() {
  return load(one("#project-suggestions"), "/settings/project-suggestions");
}

/** Store names, and show what the server then has: it may refuse because they were changed elsewhere. */
async function changeNames(body, form) {
  let result;
  try {
    const answer = await postJson("/settings/projects", body);
    result = answer.applied ? "Saved." : "Saved. The running update of the catalog applies it.";
    form?.reset();
  } catch (error) {
    result = describeError(error);
  }
  await load(one("#project-names"), "/settings/projects");
  one("#names-status").textContent = result;
  await loadSuggestions();
}

export function initSettings() {
  const form = one("#settings");
  if (!form) {
    return;
  }
  enable(form);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => save(event.target));
  const section = one("#projects");
  enable(section);
  loadSuggestions();
  section.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.names) {
      changeNames(JSON.parse(button.dataset.names));
    } else if (button?.dataset.project) {
      const { project, name } = one("#name-project").elements;
      project.value = JSON.parse(button.dataset.project);
      name.focus();
    }
  });
  section.addEventListener("submit", (event) => {
    event.preventDefault();
    const { project, name } = event.target.elements;
    changeNames({ project: project.value, name: name.value }, event.target);
  });
}
