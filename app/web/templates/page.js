// Keeps an open page current. What a reader has opened, typed, selected or focused stays as it is: only what differs
// from the newest page is changed. Without this script the page is loaded anew instead.
"use strict";

(() => {
  const every = Number(document.body.dataset.refresh) * 1000;
  const quiet = document.querySelector(".quiet");
  let shown = "";
  let answered = new Date();

  const same = (one, other) =>
    one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "") && one.classList?.[0] === other.classList?.[0];

  // The old node that becomes a new one: the next, or a later element of its kind, or wherever its id is.
  const counterpart = (node, next, known) => {
    if (node.id) return known.get(node.id);
    let old = next;
    while (old && node.nodeType === Node.ELEMENT_NODE && !same(old, node)) old = old.nextSibling;
    return old && same(old, node) ? old : undefined;
  };

  const morph = (old, fresh) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes])
      if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes)
      if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    const known = new Map([...old.children].filter((each) => each.id).map((each) => [each.id, each]));
    let next = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      const found = counterpart(node, next, known);
      if (!found) {
        old.insertBefore(node, next);
        continue;
      }
      if (node.id) {
        if (found === next) next = next.nextSibling;
        else old.insertBefore(found, next);
      } else {
        while (next !== found) next = gone(next);
        next = found.nextSibling;
      }
      morph(found, node);
    }
    while (next) next = gone(next);
  };

  const gone = (node) => {
    const next = node.nextSibling;
    node.remove();
    return next;
  };

  const refresh = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { signal: AbortSignal.timeout(every) });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      const page = await answer.text();
      answered = new Date();
      quiet.hidden = true;
      if (page === shown) return;
      shown = page;
      const fresh = new DOMParser().parseFromString(page, "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const newer = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
        if (newer) morph(part, newer);
      }
    } catch {
      quiet.textContent = `No answer since ${answered.toLocaleTimeString()}: all of this may have changed.`;
      quiet.hidden = false;
    }
  };

  setInterval(refresh, every);
  document.addEventListener("visibilitychange", refresh);
})();
