// Times in the reader's zone. The server writes UTC, and what it wrote is replaced letter by letter
// by the same form of the local time, so nothing changes its width. The title has UTC.
const AGE_EVERY_MS = 5000;
const TIMES = "time[datetime], [data-time]"; // data-time: where HTML has no <time>, as in SVG
const isLocal = document.documentElement.dataset.times !== "utc";
const written = new WeakMap(); // text node -> what stands in it by our hand

const two = (number) => String(number).padStart(2, "0");
const day = (at, utc) => utc ? at.toISOString().slice(0, 10) : `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const clock = (at, utc) => utc ? at.toISOString().slice(11, 19) : `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
const named = new Intl.DateTimeFormat("en", { timeZoneName: "short" });
const zone = (at) => named.formatToParts(at).find((part) => part.type === "timeZoneName").value;

const localised = (text, at) => {
  const pairs = [
    [day(at, true), day(at, false)], [day(at, true).slice(5), day(at, false).slice(5)],
    [clock(at, true), clock(at, false)], [clock(at, true).slice(0, 5), clock(at, false).slice(0, 5)],
    ["UTC", zone(at)],
  ];
  // One pass: what was put in is not looked at again.
  const found = new RegExp(pairs.map(([utc]) => utc).join("|"), "g");
  return text.replace(found, (part) => pairs.find(([utc]) => utc === part)[1]);
};

const texts = (element) => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
};

// Ages grow while a page stands: the same words as hansard_web/ui/format.py.
const age = (seconds) => {
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ago`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ago`;
  return null;
};

const show = (element) => {
  const at = new Date(element.dataset.time ?? element.dateTime);
  if (Number.isNaN(at.getTime())) return;
  if (element.hasAttribute("data-age")) {
    if (!isLocal || element.dataset.local) return;
    element.dataset.local = "1";
    element.title = `${day(at, false)} ${clock(at, false)} ${zone(at)} · ${element.title}`;
    return;
  }
  for (const node of texts(element)) {
    if (!isLocal || written.get(node) === node.data) continue;
    const text = localised(node.data, at);
    written.set(node, text);
    if (text !== node.data) node.data = text;
  }
};

const showAll = (root) => {
  if (root.matches?.(TIMES)) show(root);
  for (const element of root.querySelectorAll?.(TIMES) ?? []) show(element);
  if (!isLocal) return;
  for (const element of root.querySelectorAll?.("[data-zone]") ?? []) {
    const name = zone(new Date());
    if (element.textContent !== name) element.textContent = name;
    element.title = Intl.DateTimeFormat().resolvedOptions().timeZone;
  }
};

new MutationObserver((changes) => {
  for (const { type, target, addedNodes } of changes)
    if (type === "characterData") target.parentElement && showAll(target.parentElement.closest(TIMES) ?? target.parentElement);
    else for (const node of addedNodes) showAll(node.nodeType === Node.ELEMENT_NODE ? node : (node.parentElement?.closest(TIMES) ?? node));
}).observe(document.body, { childList: true, characterData: true, subtree: true });
showAll(document.body);

for (const element of document.querySelectorAll("[data-zone-name]"))
  element.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-age]")) {
    const words = age(Math.floor((Date.now() - Date.parse(element.dateTime)) / 1000));
    if (words && words !== element.textContent) element.textContent = words;
  }
}, AGE_EVERY_MS);
