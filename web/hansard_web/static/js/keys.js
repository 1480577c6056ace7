// One key map for every page. A key becomes an event on the focused element, so that a page's own
// module can act on it (and call preventDefault) before the general behaviour below.
const NAMES = {
  j: "next", ArrowDown: "next", k: "previous", ArrowUp: "previous",
  Enter: "open", Escape: "close", x: "select", c: "compare", ".": "pause", y: "copy-link",
  e: "next-error", n: "next-match", p: "previous-match", "[": "collapse-all", "]": "expand-all",
  a: "approve", r: "revise",
  ArrowLeft: "collapse", ArrowRight: "expand", Home: "first", End: "last",
  "/": "search", "?": "help",
};
const LEADER_MS = 1500;
let leaderUntil = 0;

const isTyping = (element) =>
  element instanceof HTMLElement &&
  (element.isContentEditable ||
    element.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"));

// A key that the focused control needs for itself (Enter on a link, arrows in a radio group).
const belongsToControl = (key, element) =>
  element instanceof HTMLElement &&
  ((key === "Enter" && element.matches("a, button, summary")) ||
    (key.startsWith("Arrow") && element.matches("input, [role=slider]")));

export const announce = (text) => {
  document.getElementById("say").textContent = text;
};

export const toast = (text) => {
  const box = document.getElementById("toast");
  box.querySelector("span").textContent = text;
  box.hidden = false;
  setTimeout(() => (box.hidden = true), 6000);
};

// Pages of plain HTTP from another machine have no navigator.clipboard: there a selection is copied.
const copySelected = (text) => {
  const box = document.createElement("textarea");
  const focused = document.activeElement;
  box.value = text;
  document.body.append(box);
  box.select();
  const isDone = document.execCommand("copy");
  box.remove();
  focused?.focus();
  return isDone;
};

// Resolves to whether the text was copied: a browser may refuse both ways.
export const copy = async (text, said = "Copied") => {
  const write = navigator.clipboard?.writeText(text).then(() => true, () => false);
  const isDone = (await write) || copySelected(text);
  if (isDone) announce(said);
  else toast("Not copied: the browser refused it.");
  return isDone;
};

const general = {
  search() {
    const field = document.querySelector("[data-search-here]") ?? document.getElementById("q-all");
    field.focus();
    field.select();
    return true;
  },
  help() {
    document.getElementById("keys").togglePopover();
    return true;
  },
  "copy-link"() {
    copy(location.href, "Link copied");
    return true;
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const focused = document.activeElement;
  if (isTyping(focused)) {
    if (event.key === "Escape") focused.blur();
    return;
  }
  if (performance.now() < leaderUntil) {
    leaderUntil = 0;
    const place = document.querySelector(`.nav [data-go="${CSS.escape(event.key)}"]`);
    if (place) {
      event.preventDefault();
      place.click();
    }
    return;
  }
  if (event.key === "g") {
    leaderUntil = performance.now() + LEADER_MS;
    return;
  }
  const name = NAMES[event.key];
  if (!name || belongsToControl(event.key, focused)) return;
  const target = focused && focused !== document.body ? focused : document;
  const wasHandled = !target.dispatchEvent(
    new CustomEvent(`key:${name}`, { bubbles: true, cancelable: true }),
  );
  if (wasHandled || general[name]?.()) event.preventDefault();
});
