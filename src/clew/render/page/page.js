"use strict";
// The script of exported pages: branches, search inside the page, the filter of an index, keyboard shortcuts.
(() => {
  const { one, all, isShown, reveal } = clewView;

  const MAX_HITS = 5000;
  const MIN_QUERY_CHARS = 2;
  const SEARCH_DELAY_MS = 120;

  const main = one("main");
  const searchField = one("#q");
  const hitCount = one("#hits");
  const indexFilter = one("#filter");
  const foldButton = one("#fold");

  const followHash = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target) {
      reveal(target);
      target.scrollIntoView({ block: "start" });
    }
  };

  const initBranches = () => {
    for (const fork of all(".fork")) {
      const article = fork.closest("article");
      const parent = article && article.dataset.b;
      const branches = all("a[data-go]", fork).map((link) => Number(link.dataset.go));
      clewView.addFork(parent ? Number(parent) : 0, branches);
    }
    for (const link of all("a[data-go]")) {
      link.addEventListener("click", () => clewView.chooseBranch(Number(link.dataset.go)));
    }
    clewView.pickBranches(all(".fork a.now").map((link) => Number(link.dataset.go)));
    clewView.updateBranches();
  };

  // Search
  let hits = [];
  let currentHit = -1;

  const highlightHits = () => {
    if (!("highlights" in CSS)) {
      return;
    }
    CSS.highlights.set("hit", new Highlight(...hits.slice(0, MAX_HITS)));
    CSS.highlights.set("now", new Highlight(...(hits[currentHit] ? [hits[currentHit]] : [])));
  };

  const findInNode = (node, query) => {
    const text = node.data.toLowerCase();
    for (let at = text.indexOf(query); at >= 0 && hits.length < MAX_HITS; at = text.indexOf(query, at + query.length)) {
      // Lower case may be longer than the text itself.
      if (at + query.length > node.length) {
        break;
      }
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      hits.push(range);
    }
  };

  // The line of a folded tool call repeats what is inside it.
  const isSearched = (node) =>
    node.parentElement.closest(".c > summary > .call-target") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;

  const search = (value) => {
    const query = value.toLowerCase();
    hits = [];
    currentHit = -1;
    hitCount.textContent = "";
    if (query.length >= MIN_QUERY_CHARS) {
      const nodes = document.createTreeWalker(main, NodeFilter.SHOW_TEXT, isSearched);
      while (nodes.nextNode() && hits.length < MAX_HITS) {
        findInNode(nodes.currentNode, query);
      }
      hitCount.textContent = `${hits.length >= MAX_HITS ? `${MAX_HITS}+` : hits.length} found`;
    }
    highlightHits();
  };

  const goToHit = (step) => {
    if (!hits.length) {
      return;
    }
    currentHit = (currentHit + step + hits.length) % hits.length;
    const element = hits[currentHit].startContainer.parentElement;
    reveal(element);
    element.scrollIntoView({ block: "center" });
    hitCount.textContent = `${currentHit + 1} of ${hits.length}`;
    highlightHits();
  };

  const onSearchKey = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (!hits.length) {
        search(searchField.value);
      }
      goToHit(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      searchField.value = "";
      search("");
      searchField.blur();
    }
  };

  const initSearch = () => {
    let timer = 0;
    searchField.hidden = false;
    searchField.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => search(searchField.value), SEARCH_DELAY_MS);
    });
    searchField.addEventListener("keydown", onSearchKey);
  };

  // The index of a site
  const filterIndex = () => {
    const words = indexFilter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of all(".list li")) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
    for (const list of all(".list")) {
      list.parentElement.hidden = !all("li:not([hidden])", list).length;
    }
  };

  // Keyboard
  let selected = null;

  const move = (selector, step) => {
    const list = all(selector).filter(isShown);
    if (!list.length) {
      return;
    }
    const next = clewView.clampedItem(list, clewView.stepFrom(list, selected, step));
    if (selected) {
      selected.classList.remove("here");
    }
    selected = next;
    selected.classList.add("here");
    selected.scrollIntoView({ block: "start" });
    selected.tabIndex = -1;
    selected.focus({ preventScroll: true });
  };

  const focusField = () => {
    const field = searchField || indexFilter;
    if (field) {
      field.focus();
    }
  };

  const ACTIONS = {
    j: () => move("main > article", 1),
    k: () => move("main > article", -1),
    J: () => move("main > article.prompt", 1),
    K: () => move("main > article.prompt", -1),
    "/": focusField,
    "?": () => one("#keys").showModal(),
    t: () => clewView.cycleChoice("theme"),
    d: () => clewView.cycleChoice("diff"),
    o: () => foldButton && foldButton.click(),
  };

  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || clewView.isTextField(event.target)) {
      return;
    }
    const level = clewView.detailRadio(event.key);
    if (level) {
      level.checked = true;
    } else if (Object.hasOwn(ACTIONS, event.key)) {
      ACTIONS[event.key]();
    } else {
      return;
    }
    event.preventDefault();
  };

  clewView.rememberChoices("theme", "diff");
  initBranches();
  addEventListener("hashchange", followHash);
  followHash();
  if (searchField && main) {
    initSearch();
  }
  if (indexFilter) {
    indexFilter.hidden = false;
    indexFilter.addEventListener("input", filterIndex);
  }
  clewView.colourCode();
  if (foldButton && one("main details")) {
    clewView.bindFoldButton(foldButton, (isOpen) => {
      all("main details").forEach((details) => {
        details.open = isOpen;
      });
    });
  }
  addEventListener("keydown", onKey);
  clewView.setContents(all(".toc ol a"));
})();
