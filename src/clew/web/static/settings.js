/** The settings page: every change is stored at once. */

import { describeError, postJson } from "./fragments.js";

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
    const index = one("#setting-theme").selectedIndex;
    one(`#t${index}`).checked = true;
  } else if (name === "density") {
    document.body.classList.toggle("compact", value === "compact");
    document.body.classList.toggle("comfortable", value !== "compact");
  } else if (name === "masking") {
    document.cookie = "clew-redact=; path=/; samesite=strict; max-age=0";
  }
}

async function save(field) {
  const status = one("#settings-status");
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

export function initSettings() {
  const form = one("#settings");
  if (!form) {
    return;
  }
  all("fieldset", form).forEach((fieldset) => {
    fieldset.disabled = false;
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => save(event.target));
}
