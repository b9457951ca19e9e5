"use strict";
(() => {
  const root = document.documentElement;
  const find = (selector) => [...document.querySelectorAll(selector)];
  const grid = document.getElementById("grid");
  const text = document.getElementById("text");
  const cells = find("#grid .cell a");
  const chosen = { word: new Set(), backend: new Set() };
  let here = cells[0];

  // Theme: the reader's choice is kept where the browser allows it.
  const kept = { get: () => { try { return localStorage.getItem("greenlane-theme"); } catch { return null; } },
                 set: (value) => { try { localStorage.setItem("greenlane-theme", value); } catch { /* not allowed */ } } };
  const theme = document.getElementById("theme");
  if (kept.get() === "light" || kept.get() === "dark") root.dataset.theme = kept.get();
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    kept.set(root.dataset.theme);
  });

  // Filters: a lane is shown when it fits the text and, of each group, one of the pressed chips.
  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (cell) =>
      words.every((word) => cell.dataset.text.includes(word)) &&
      (!chosen.word.size || chosen.word.has(cell.dataset.word)) &&
      (!chosen.backend.size || chosen.backend.has(cell.closest(".backend").dataset.backend));
    let shown = 0;
    for (const cell of cells) {
      const hidden = !fits(cell);
      cell.parentElement.hidden = hidden;
      shown += hidden ? 0 : 1;
    }
    for (const gap of find("#grid .gap")) gap.hidden = shown < cells.length;
    for (const part of find("#grid .row, #grid .backend")) part.hidden = !part.querySelector(".cell:not([hidden])");
    document.getElementById("shown").textContent = `${shown} of ${cells.length}`;
    document.getElementById("nothing").hidden = shown > 0;
    if (here && here.parentElement.hidden) stand(visible()[0]);
  };
  const visible = () => cells.filter((cell) => !cell.parentElement.hidden);
  find(".filters").forEach((form) => {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
  });
  text.addEventListener("input", filter);
  for (const chip of find(".chip")) {
    chip.addEventListener("click", () => {
      const pressed = chip.getAttribute("aria-pressed") !== "true";
      chip.setAttribute("aria-pressed", String(pressed));
      for (const kind of ["word", "backend"]) {
        if (kind in chip.dataset) chosen[kind][pressed ? "add" : "delete"](chip.dataset[kind]);
      }
      filter();
    });
  }

  // The grid is one stop of the Tab key; arrows move inside it, to the nearest cell in that direction.
  const stand = (cell) => {
    if (here) here.tabIndex = -1;
    here = cell;
    if (here) here.tabIndex = 0;
  };
  for (const cell of cells) cell.tabIndex = -1;
  stand(here);
  const middle = (cell) => {
    const box = cell.getBoundingClientRect();
    return { x: box.left + box.width / 2, y: box.top + box.height / 2, height: box.height };
  };
  const upOrDown = (from, sign) => {
    const start = middle(from);
    let best = null;
    for (const cell of visible()) {
      const place = middle(cell);
      const away = sign * (place.y - start.y);
      if (away < start.height / 2) continue;
      const rank = [Math.round(away / 4), Math.abs(place.x - start.x)];
      if (!best || rank[0] < best.rank[0] || (rank[0] === best.rank[0] && rank[1] < best.rank[1])) best = { cell, rank };
    }
    return best && best.cell;
  };
  const target = (key, from) => {
    const all = visible();
    const at = all.indexOf(from);
    switch (key) {
      case "ArrowRight": return all[at + 1];
      case "ArrowLeft": return all[at - 1];
      case "ArrowDown": return upOrDown(from, 1);
      case "ArrowUp": return upOrDown(from, -1);
      case "Home": return all[0];
      case "End": return all[all.length - 1];
      default: return undefined;
    }
  };
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest(".cell a");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = target(event.key, cell);
    if (!to) return;
    event.preventDefault();
    stand(to);
    to.focus();
  });
  grid.addEventListener("focusin", (event) => {
    const cell = event.target.closest(".cell a");
    if (cell) stand(cell);
  });

  // A lane's details follow the address, so that they can be linked to.
  const current = () => document.querySelector(".lane:target");
  const of = (lane) => cells.find((cell) => cell.hash === `#${lane.id}`);
  let last = null;
  const opened = () => {
    const lane = current();
    for (const cell of cells) cell.removeAttribute("aria-current");
    if (lane) {
      lane.querySelector("h2").focus({ preventScroll: true });
      const cell = of(lane);
      if (cell) cell.setAttribute("aria-current", "true");
    } else if (last) {
      const cell = of(last);
      if (cell && !cell.parentElement.hidden) { stand(cell); cell.focus({ preventScroll: true }); }
    }
    last = lane;
  };
  addEventListener("hashchange", opened);
  const close = () => {
    const kept = scrollY;
    location.hash = "";
    scrollTo(0, kept);
  };
  for (const link of find(".close")) {
    link.addEventListener("click", (event) => { event.preventDefault(); close(); });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !event.target.closest("input, textarea")) {
      event.preventDefault();
      text.focus();
      text.select();
    } else if (event.key === "Escape" && event.target === text) {
      if (text.value) { text.value = ""; filter(); } else if (here) here.focus();
    } else if (event.key === "Escape" && current()) {
      close();
    } else if ((event.key === "Enter" || event.key === "ArrowDown") && event.target === text && visible().length) {
      event.preventDefault();
      stand(visible()[0]);
      here.focus();
    }
  });
  opened();
})();
