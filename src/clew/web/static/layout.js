"use strict";
/**
 * Arranges the session page before it is painted, so that nothing moves afterwards: shows the list of sessions as it was
 * left on the page before, and opens the panels for which there is room. The page runs this script as soon as the
 * browser has read the elements around the transcript.
 */
const clewLayout = (() => {
  const PANELS_OPEN_AT_FIRST = ["panel-prompts", "panel-timeline", "panel-files"];
  const PANELS_KEY = "clew-panels";
  const LIST_KEY = "clew-list";
  const LIST_CHOICES_KEY = "clew-list-choices";
  const MAX_SAVED_CHARS = 1_000_000;

  const list = document.getElementById("session-list");
  const rows = list.querySelector(".list-rows");
  const filter = list.querySelector("input[type=search]");

  /** Browsers may refuse storage, and what is stored may be of another version. */
  const load = (storage, key) => {
    try {
      return JSON.parse(window[storage].getItem(key)) || {};
    } catch {
      return {};
    }
  };
  const save = (storage, key, value) => {
    try {
      window[storage].setItem(key, JSON.stringify(value));
    } catch {
      // It holds for this page only.
    }
  };

  /** Open the panels that a reader left open. Narrow screens have no room for them. */
  const arrangePanels = () => {
    for (const panel of document.querySelectorAll(".beside details.panel")) {
      panel.open = load("localStorage", PANELS_KEY)[panel.id] ?? PANELS_OPEN_AT_FIRST.includes(panel.id);
      panel.firstElementChild.addEventListener("click", () => {
        save("localStorage", PANELS_KEY, { ...load("localStorage", PANELS_KEY), [panel.id]: !panel.open });
      });
    }
  };

  const listGroup = () => document.querySelector("input[name=group]:checked").value;
  const isListOpen = () => document.body.classList.contains("with-list");

  const saveListChoices = () => {
    save("localStorage", LIST_CHOICES_KEY, { isClosed: !isListOpen(), group: listGroup() });
  };

  /** Read while scrolling: reading it when the page is left would arrange the whole page once more. */
  let scrolled = 0;
  rows.addEventListener("scroll", () => { scrolled = rows.scrollTop; }, { passive: true });

  /** Keep the list for the page that is opened next in this tab. */
  const saveList = (state) => {
    const html = rows.innerHTML.length > MAX_SAVED_CHARS ? "" : rows.innerHTML;
    const { run } = list.dataset;
    save("sessionStorage", LIST_KEY, { run, state, html, words: filter.value, scroll: scrolled });
  };

  /** Mark the session of this page in the list, and unfold the sub-agents around it. */
  const markCurrentSession = () => {
    let current = null;
    for (const link of rows.querySelectorAll("li > a")) {
      if (link.pathname === list.dataset.session) {
        current = link;
        link.setAttribute("aria-current", "page");
      } else {
        link.removeAttribute("aria-current");
      }
    }
    for (let parent = current; parent && parent !== rows; parent = parent.parentElement) {
      if (parent.tagName === "DETAILS") {
        parent.open = true;
      }
    }
    return current;
  };

  /** Scroll the list as little as needed to show a row. */
  const showRow = (link) => {
    const [row, box] = [link.getBoundingClientRect(), rows.getBoundingClientRect()];
    if (row.top < box.top || row.bottom > box.bottom) {
      rows.scrollTop += row.top - box.top - box.height / 3;
    }
  };

  /** @returns {string} the state of the list that was restored; "" if it has to be loaded */
  const restoreList = () => {
    const { isClosed, group } = load("localStorage", LIST_CHOICES_KEY);
    list.hidden = false;
    document.body.classList.toggle("with-list", !isClosed);
    for (const radio of list.querySelectorAll("input[name=group]")) {
      radio.checked ||= radio.value === group;
    }
    const saved = load("sessionStorage", LIST_KEY);
    filter.value = saved.words || "";
    if (!saved.html || saved.run !== list.dataset.run) {
      return "";
    }
    rows.innerHTML = saved.html;
    const current = markCurrentSession();
    if (!current && !saved.words) {
      rows.replaceChildren();
      return "";
    }
    rows.scrollTop = saved.scroll;
    if (current) {
      showRow(current);
    }
    return saved.state;
  };

  /** What sticks below the bar has to know its height, which depends on the width of the screen. */
  const bar = document.querySelector(".bar");
  const barObserver = new ResizeObserver(() => {
    document.body.style.setProperty("--bar-height", `${bar.offsetHeight}px`);
  });

  barObserver.observe(bar);
  const listState = restoreList();
  if (matchMedia("(min-width: 60rem)").matches) {
    arrangePanels();
  }
  return { listState, listGroup, isListOpen, saveList, saveListChoices, markCurrentSession, showRow };
})();
