/** Starts the scripts of a page. `clewView` comes from view.js, which exported pages use as well. */

import { initActions } from "./actions.js";
import { initAnnotatedPage, initAnnotations } from "./annotations.js";
import { initFind } from "./find.js";
import { initForms } from "./forms.js";
import { bindFragment, initFragments } from "./fragments.js";
import { initKeyboard } from "./keyboard.js";
import { initLive } from "./live.js";
import { initMessageActions } from "./message_actions.js";
import { initPalette } from "./palette.js";
import { initSessionList } from "./session_list.js";
import { initSettings } from "./settings.js";
import { initTitle } from "./titles.js";
import { initTranscript, isSessionPage } from "./transcript.js";
import { initUnseen } from "./unseen.js";

const { one } = clewView;

/** The button that hides or shows secrets sets a cookie and reloads the page. */
function initMaskButton() {
  const button = one("#mask");
  button.hidden = false;
  button.addEventListener("click", () => {
    document.cookie = `clew-redact=${button.dataset.profile}; path=/; samesite=strict`;
    location.reload();
  });
}

function initHelpButton() {
  const button = one("#help");
  button.hidden = false;
  button.addEventListener("click", () => one("#keys").showModal());
}

clewView.rememberChoices("theme", "diff", "detail");
initMaskButton();
initHelpButton();
initFragments();
initForms();
initSessionList();
initPalette();
initActions();
initSettings();
initAnnotatedPage();
if (isSessionPage) {
  initTranscript();
  initLive();
  initFind();
  initTitle();
  initUnseen();
  initMessageActions();
  initAnnotations();
}
initKeyboard();
bindFragment(document);
