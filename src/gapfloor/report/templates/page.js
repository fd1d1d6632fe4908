"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Hover and keyboard focus show a mark's numbers; textContent keeps names from becoming markup.
  const tip = document.getElementById("tip");
  const place = (x, y) => {
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(x + 12, innerWidth - box.width - 8)) + "px";
    tip.style.top = (y - box.height - 12 > 8 ? y - box.height - 12 : y + 16) + "px";
  };
  const show = (node, x, y) => { tip.textContent = node.dataset.tip; tip.hidden = false; place(x, y); };
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointermove", (event) => {
    const node = event.target.closest && event.target.closest("[data-tip]");
    if (node) show(node, event.clientX, event.clientY); else hide();
  });
  document.addEventListener("pointerdown", (event) => {
    const node = event.target.closest && event.target.closest("[data-tip]");
    if (node) show(node, event.clientX, event.clientY);
  });
  const showAbove = (node) => { const box = node.getBoundingClientRect(); show(node, box.left + box.width / 2, box.top); };
  let focused = null;
  document.addEventListener("focusin", (event) => {
    focused = event.target.closest && event.target.closest("[data-tip]");
    if (focused) showAbove(focused);
  });
  document.addEventListener("focusout", () => { focused = null; hide(); });
  // Focus scrolls a mark into view and the tip follows it. Any other scrolling hides the tip.
  document.addEventListener("scroll", () => { if (focused) showAbove(focused); else hide(); }, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") { focused = null; hide(); } });

  // A figure is one stop of the Tab key; the arrow keys lead from mark to mark.
  const prepareFigure = (figure) => {
    const marks = all("[data-tip]", figure);
    marks.forEach((mark, at) => {
      mark.setAttribute("tabindex", at === 0 ? "0" : "-1");
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", mark.dataset.tip);
    });
    const move = (from, to) => {
      from.setAttribute("tabindex", "-1");
      to.setAttribute("tabindex", "0");
      to.focus();
    };
    figure.addEventListener("keydown", (event) => {
      const at = marks.indexOf(event.target);
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: marks.length - 1 }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      if (marks[to]) move(marks[at], marks[to]);
    });
  };

  // A table or figure that fits needs no scrolling and is not a stop of the Tab key.
  const scrollable = () => all(".scroll, .single").forEach((box) => {
    if (box.scrollWidth > box.clientWidth + 1) box.setAttribute("tabindex", "0"); else box.removeAttribute("tabindex");
  });
  scrollable();
  addEventListener("resize", scrollable);
  document.addEventListener("toggle", scrollable, true);

  // Sorting: numbers by value, words by alphabet, missing values last; a third click restores the order.
  const compare = (a, b) => {
    if (a === b) return 0;
    if (a === "") return 1;
    if (b === "") return -1;
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  const prepareTable = (table) => {
    const body = table.tBodies[0];
    const original = Array.from(body.rows);
    const heads = all("thead tr:last-child th", table);
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        const rows = original.slice();
        if (next !== "none") {
          rows.sort((a, b) => {
            const left = a.cells[column].dataset.sort, right = b.cells[column].dataset.sort;
            const order = compare(left, right);
            return left === "" || right === "" || next === "ascending" ? order : -order;
          });
        }
        rows.forEach((row) => body.appendChild(row));
      });
    });
  };

  all(".chart, .strip").forEach(prepareFigure);
  all("details.table table").forEach(prepareTable);

  // Replays: one sprite sheet per clip, one clock per level.
  all(".scene").forEach((scene) => {
    const stride = Number(scene.dataset.stride);
    const clips = all("canvas", scene).map((canvas) => {
      const image = new Image();
      const clip = { canvas, image, frames: Number(canvas.dataset.frames), columns: Number(canvas.dataset.columns) };
      image.onload = () => draw();
      image.src = canvas.dataset.sheet;
      return clip;
    });
    const last = Math.max(...clips.map((clip) => clip.frames)) - 1;
    const play = scene.querySelector(".play"), seek = scene.querySelector(".seek"), clock = scene.querySelector(".clock");
    seek.max = String(last);
    let at = Number(scene.dataset.start), isFresh = true, timer = null;
    const draw = () => {
      clips.forEach(({ canvas, image, frames, columns }) => {
        if (!image.complete || !image.naturalWidth) return;
        const frame = Math.min(at, frames - 1), w = canvas.width, h = canvas.height;
        canvas.getContext("2d").drawImage(image, (frame % columns) * w, Math.floor(frame / columns) * h, w, h, 0, 0, w, h);
        canvas.dataset.shown = String(frame);
        canvas.closest(".clip").classList.toggle("is-ended", at >= frames - 1 && last > 0);
      });
      seek.value = String(at);
      clock.textContent = "step " + at * stride;
    };
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); };
    const start = () => {
      if (isFresh || at >= last) at = 0;
      isFresh = false;
      draw();
      play.textContent = "Pause"; play.setAttribute("aria-pressed", "true");
      timer = setInterval(() => { at += 1; draw(); if (at >= last) stop(); }, 66);
    };
    play.addEventListener("click", () => (timer ? stop() : start()));
    seek.addEventListener("input", () => { stop(); isFresh = false; at = Number(seek.value); draw(); });
    draw();
  });

  // A link into a closed table or figure opens it.
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();

  // The theme: that of the system, light or dark. A page opened from disk may not be able to remember it.
  const theme = document.getElementById("theme"), schemes = { auto: "light dark", light: "light", dark: "dark" };
  const names = Object.keys(schemes);
  const remembered = (() => { try { return localStorage.getItem("gapfloor-theme"); } catch (error) { return null; } })();
  const choose = (name) => {
    document.documentElement.style.colorScheme = schemes[name];
    theme.textContent = "Theme: " + name;
    theme.dataset.name = name;
  };
  choose(names.includes(remembered) ? remembered : "auto");
  theme.addEventListener("click", () => {
    choose(names[(names.indexOf(theme.dataset.name) + 1) % names.length]);
    try { localStorage.setItem("gapfloor-theme", theme.dataset.name); } catch (error) { /* not remembered */ }
  });

  const copy = document.getElementById("copy-card"), text = document.getElementById("card-text"), said = document.getElementById("copied");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
    } catch (error) {
      // Pages opened from disk may not reach the clipboard: select the text instead.
      text.parentElement.open = true;
      const range = document.createRange();
      range.selectNodeContents(text);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      said.textContent = "Selected: press Ctrl+C.";
      return;
    }
    said.textContent = "Copied.";
  });
})();
