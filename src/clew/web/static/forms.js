/** Forms that show their results while the user types: search and the filters of the session list. */

import { describeError, fillFrom } from "./fragments.js";

const { one } = clewView;

const SEARCH_DELAY_MS = 60;
const FILTER_DELAY_MS = 250;
const SLOW_FIELDS = /^(text|file)$/;
/* Fields that search inside sessions. They are submitted when they are complete. */

/**
 * Submit a form while the user types, and put the answer into an element.
 * @param {HTMLFormElement} form
 * @param {HTMLElement} target
 * @param {number} delay milliseconds after the last key
 */
function submitWhileTyping(form, target, delay) {
  let timer = 0;
  let pending = null;

  async function submit() {
    const filled = [...new FormData(form)].filter(([, value]) => value !== "");
    const query = new URLSearchParams(filled);
    const url = form.getAttribute("action") + (query.size ? `?${query}` : "");
    if (pending) {
      pending.abort();
    }
    pending = new AbortController();
    history.replaceState(null, "", url);
    const started = performance.now();
    try {
      await fillFrom(target, url, pending.signal);
      target.dataset.took = String(Math.round(performance.now() - started));
    } catch (error) {
      if (error.name !== "AbortError") {
        target.textContent = describeError(error);
      }
    }
  }

  function submitLater() {
    clearTimeout(timer);
    timer = setTimeout(submit, delay);
  }

  form.addEventListener("input", (event) => {
    if (!SLOW_FIELDS.test(event.target.name)) {
      submitLater();
    }
  });
  form.addEventListener("change", (event) => {
    if (SLOW_FIELDS.test(event.target.name)) {
      submitLater();
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    submit();
  });
}

export function initForms() {
  const searchForm = one("#ask");
  const filterForm = one("#filters");
  if (searchForm) {
    submitWhileTyping(searchForm, one("#hits"), SEARCH_DELAY_MS);
  }
  if (filterForm) {
    submitWhileTyping(filterForm, one("#found"), FILTER_DELAY_MS);
  }
}
