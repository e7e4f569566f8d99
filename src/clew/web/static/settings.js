/** The settings page: every change is stored at once. */

import { describeError, fillFrom, postJson } from "./fragments.js";

const { one, all } = clewView;

/** What a browser chose by itself gives way to a new setting. */
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

async function changeNames(body) {
  const status = one("#names-status");
  const section = one("#project-names");
  try {
    const answer = await postJson("/settings/projects", body);
    await fillFrom(section, "/settings/projects");
    status.textContent = answer.applied ? "Saved." : "Saved. The running update of the catalog applies it.";
  } catch (error) {
    status.textContent = describeError(error);
  }
  enable(section);
}

export function initSettings() {
  const form = one("#settings");
  if (!form) {
    return;
  }
  enable(form);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => save(event.target));
  const section = one("#project-names");
  enable(section);
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
    changeNames({ names: { [project.value]: name.value } });
  });
}
