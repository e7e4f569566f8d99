"use strict";
// Used by exported pages and by the web app: remembered choices, branches, code colours, printing, contents.
const clewView = (() => {
  const HEADER_PX = 70;
  const LINE_STEP_PX = 20;
  const BELOW_LINK_TARGET_PX = 92;

  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const isShown = (element) => element.getClientRects().length > 0;

  // Browsers may refuse local storage to pages that are opened from disk.
  const loadChoice = (name) => {
    try {
      return localStorage.getItem(`clew-${name}`);
    } catch {
      return null;
    }
  };
  const saveChoice = (name, id) => {
    try {
      localStorage.setItem(`clew-${name}`, id);
    } catch {
      // The choice holds for this page only.
    }
  };

  const forgetChoice = (name) => {
    try {
      localStorage.removeItem(`clew-${name}`);
    } catch {
      // Nothing was remembered.
    }
  };

  const rememberChoices = (...names) => {
    for (const name of names) {
      const id = loadChoice(name);
      const radio = id && document.getElementById(id);
      if (radio && radio.name === name) {
        radio.checked = true;
      }
      for (const input of all(`input[name=${name}]`)) {
        input.addEventListener("change", () => saveChoice(name, input.id));
      }
    }
  };

  const cycleChoice = (name) => {
    const radios = all(`input[name=${name}]`);
    const next = radios[(radios.findIndex((radio) => radio.checked) + 1) % radios.length];
    if (next) {
      next.checked = true;
      next.dispatchEvent(new Event("change"));
    }
  };

  // Branches are named by their first message. Of every fork one branch is shown.
  const parentBranch = new Map();
  const siblingBranches = new Map();
  const pickedBranches = new Set();

  const addFork = (parent, branches) => {
    for (const branch of branches) {
      parentBranch.set(branch, parent);
      siblingBranches.set(branch, branches);
    }
  };
  const pickBranches = (branches) => branches.forEach((branch) => pickedBranches.add(branch));

  const isBranchShown = (branch) => {
    for (let current = branch; current; current = parentBranch.get(current) || 0) {
      if (!pickedBranches.has(current)) {
        return false;
      }
    }
    return true;
  };

  // The tree of branches knows how each begins; the links of a fork in the text get the same name.
  const nameBranchLink = (link) => {
    const treeLink = link.dataset.named ? null : one(`.tree a[data-go="${Number(link.dataset.go)}"]`);
    if (treeLink && treeLink.hash === link.hash) {
      link.dataset.named = "1";
      link.append(`: ${treeLink.textContent}`);
    }
  };

  const updateBranches = (root = document) => {
    if (!siblingBranches.size) {
      return;
    }
    all(".fork a[data-go]", root).forEach(nameBranchLink);
    for (const article of all("article[data-b]", root)) {
      article.classList.toggle("off", !isBranchShown(Number(article.dataset.b)));
    }
    for (const link of all(".fork a[data-go], .tree a[data-go]")) {
      const isPicked = pickedBranches.has(Number(link.dataset.go));
      link.classList.toggle("now", isPicked);
      link.setAttribute("aria-current", isPicked ? "true" : "false");
    }
  };

  const chooseBranch = (branch) => {
    for (let current = branch; current; current = parentBranch.get(current) || 0) {
      (siblingBranches.get(current) || []).forEach((sibling) => pickedBranches.delete(sibling));
      pickedBranches.add(current);
    }
    updateBranches();
  };

  // Show an element: unfold what it is in, choose its branch, and raise the detail level.
  const reveal = (element) => {
    for (let parent = element; parent && parent.tagName !== "MAIN"; parent = parent.parentElement) {
      if (parent.tagName === "DETAILS") {
        parent.open = true;
      }
    }
    const article = element.closest("article");
    if (article && article.classList.contains("off")) {
      chooseBranch(Number(article.dataset.b));
    }
    const levels = ["l1", "l2", "l3"].map((name, index) => (element.closest(`.${name}`) ? index + 1 : 0));
    const needed = Math.max(0, ...levels);
    const radios = all("input[name=detail]");
    if (radios[needed] && radios.findIndex((radio) => radio.checked) < needed) {
      radios[needed].checked = true;
    }
  };

  // Code is coloured when it comes into view. Output of a tool that read a file is code too.
  const CODE = 'code[class^="x-"]';
  const READ_FILE = ".c > dl + .r:not(.err) > pre.o:only-of-type";

  const wrapFileContent = (pre) => {
    const field = all("dl > div", pre.closest(".c")).find((div) => div.firstElementChild.textContent === "file");
    const extension = field && /\.(\w{1,9})$/.exec(field.lastElementChild.textContent);
    if (!extension || pre.childElementCount) {
      return null;
    }
    const code = document.createElement("code");
    code.className = `x-${extension[1].toLowerCase()}`;
    code.append(...pre.childNodes);
    pre.append(code);
    return code;
  };
  const colourElement = (element) => {
    const code = element.tagName === "PRE" ? wrapFileContent(element) : element;
    if (code) {
      clewColour(code);
    }
  };
  const colourObserver = new IntersectionObserver(
    (changes) => {
      for (const change of changes.filter((each) => each.isIntersecting)) {
        colourObserver.unobserve(change.target);
        colourElement(change.target);
      }
    },
    { rootMargin: "300px" },
  );
  const colourCode = (root = document) => {
    all(`${CODE}, ${READ_FILE}`, root).forEach((element) => colourObserver.observe(element));
  };

  // Everything is unfolded for printing, and folded again afterwards.
  let unfoldedForPrint = [];
  addEventListener("beforeprint", () => {
    unfoldedForPrint = all("main details:not([open], [data-load])");
    unfoldedForPrint.forEach((details) => {
      details.open = true;
    });
    all(`${CODE}, ${READ_FILE}`).filter(isShown).forEach(colourElement);
  });
  addEventListener("afterprint", () => {
    unfoldedForPrint.forEach((details) => {
      details.open = false;
    });
  });

  // The entry of the prompt that is being read is marked in the table of contents. It is the last one at or above the
  // message at the top of the screen, where links lead to; at the end of the page, above the last message.
  let contentsLinks = [];
  let currentLink = null;
  let currentMessage = 0;
  let isMarking = false;

  const isOnScreen = (element) => {
    const box = element.getBoundingClientRect();
    return box.height > 0 && box.bottom > HEADER_PX && box.top < innerHeight;
  };

  // The number of the message at a height of the screen, or of the next one above: 0 above all messages, null if
  // something covers them.
  const messageAt = (y) => {
    const { left, top, width } = one("main").getBoundingClientRect();
    if (top > y) {
      return 0;
    }
    let placeholder = null;
    for (let height = y; height > 0; height -= LINE_STEP_PX) {
      const hit = document.elementFromPoint(left + width / 2, height);
      const article = hit && hit.closest("main article[id]");
      if (article) {
        return Number(article.id.slice(1));
      }
      placeholder ||= hit && hit.closest("main [data-first]");
    }
    return placeholder ? Number(placeholder.dataset.first) : null;
  };

  const readMessage = () => {
    if (scrollY + innerHeight < document.documentElement.scrollHeight - 2) {
      return messageAt(parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) + BELOW_LINK_TARGET_PX);
    }
    const selected = one("main article.here[id]");
    return selected && isOnScreen(selected) ? Number(selected.id.slice(1)) : messageAt(innerHeight - 1);
  };

  const isOnShownBranch = (link) => {
    const article = document.getElementById(link.hash.slice(1));
    return !article || !article.classList.contains("off");
  };

  // Only the list is scrolled: the page stays where the reader is.
  const scrollToEntry = (link) => {
    for (let list = link.parentElement; list && list !== document.body; list = list.parentElement) {
      if (list.scrollHeight > list.clientHeight + 1 && getComputedStyle(list).overflowY === "auto") {
        const [entry, box] = [link.getBoundingClientRect(), list.getBoundingClientRect()];
        list.scrollTop += Math.min(0, entry.top - box.top) + Math.max(0, entry.bottom - box.bottom);
        return;
      }
    }
  };

  const markCurrentPrompt = () => {
    isMarking = false;
    currentMessage = readMessage() ?? currentMessage;
    const isAtOrAbove = (link) => Number(link.hash.slice(2)) <= currentMessage && isOnShownBranch(link);
    const link = contentsLinks.findLast(isAtOrAbove) || contentsLinks[0];
    if (link && link !== currentLink) {
      currentLink?.classList.remove("here");
      currentLink = link;
      currentLink.classList.add("here");
      scrollToEntry(currentLink);
    }
  };
  const markCurrentPromptSoon = () => {
    if (!isMarking) {
      isMarking = true;
      requestAnimationFrame(markCurrentPrompt);
    }
  };
  const setContents = (links) => {
    contentsLinks = links;
    currentLink = null;
    addEventListener("scroll", markCurrentPromptSoon, { passive: true });
    addEventListener("resize", markCurrentPromptSoon);
    markCurrentPromptSoon();
  };

  // The message that is being read, and the prompt above it; 0 at the beginning of the page.
  const readingPosition = () => ({
    message: currentMessage,
    prompt: currentMessage && currentLink ? Number(currentLink.hash.slice(2)) : 0,
  });

  const bindFoldButton = (button, setAll) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      const isOpening = button.textContent === "Open all";
      setAll(isOpening);
      button.textContent = isOpening ? "Close all" : "Open all";
    });
  };

  // The index one step before or behind an element; without an element, before or behind the top of the screen.
  const stepFrom = (list, current, step) => {
    const index = list.indexOf(current);
    if (index >= 0) {
      return index + step;
    }
    const next = list.findIndex((element) => element.getBoundingClientRect().top > HEADER_PX);
    const below = next < 0 ? list.length : next;
    return step > 0 ? below - 1 + step : below + step;
  };
  const clampedItem = (list, index) => list[Math.min(list.length - 1, Math.max(0, index))];

  const detailRadio = (key) => /^[1-4]$/.test(key) && document.getElementById(`d${key - 1}`);
  const isTextField = (element) => /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) && element.type !== "radio";

  return {
    one,
    all,
    isShown,
    forgetChoice,
    rememberChoices,
    cycleChoice,
    addFork,
    pickBranches,
    updateBranches,
    chooseBranch,
    reveal,
    colourCode,
    readingPosition,
    markCurrentPromptSoon,
    setContents,
    bindFoldButton,
    stepFrom,
    clampedItem,
    detailRadio,
    isTextField,
  };
})();
