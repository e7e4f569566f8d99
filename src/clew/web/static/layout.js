"use strict";
/**
 * Arranges the session page before it is painted, so that nothing moves afterwards: opens the panels for which there is
 * room. The page runs this script as soon as it has read the elements around the transcript.
 */
const clewLayout = (() => {
  const PANELS_OPEN_AT_FIRST = ["panel-prompts", "panel-timeline", "panel-files"];
  const PANELS_KEY = "clew-panels";

  const hasColumnForPanels = matchMedia("(min-width: 68rem)").matches;

  /** @returns {Record<string, boolean>} which panels a reader has opened or closed, by their ids */
  const chosenPanels = () => {
    try {
      return JSON.parse(localStorage.getItem(PANELS_KEY)) || {};
    } catch {
      return {};
    }
  };

  const arrangePanels = () => {
    const chosen = chosenPanels();
    for (const panel of document.querySelectorAll(".beside details.panel")) {
      panel.open = chosen[panel.id] ?? PANELS_OPEN_AT_FIRST.includes(panel.id);
      panel.firstElementChild.addEventListener("click", () => {
        localStorage.setItem(PANELS_KEY, JSON.stringify({ ...chosenPanels(), [panel.id]: !panel.open }));
      });
    }
  };

  if (hasColumnForPanels) {
    arrangePanels();
  }
  return {};
})();
