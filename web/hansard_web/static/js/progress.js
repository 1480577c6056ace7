// A thin bar while the server takes its time: for requests of htmx and for a page that is left for
// another. Nothing shows below 300 ms. A form is sent once.
const AFTER_MS = 300;
const bar = document.getElementById("progress");
const running = new Set();
let timer = 0;

const show = () => {
  bar.hidden = running.size === 0;
  if (running.size === 0) document.body.removeAttribute("aria-busy");
  else document.body.setAttribute("aria-busy", "true");
};
const begin = (what) => {
  running.add(what);
  clearTimeout(timer);
  timer = setTimeout(show, AFTER_MS);
};
const end = (what) => {
  running.delete(what);
  if (running.size > 0) return;
  clearTimeout(timer);
  show();
};

// What is looked up by itself (every 5 s, while typing) and live streams are not waited for.
const isQuiet = (target) =>
  target instanceof Element && target.matches("[data-quiet], [hx-sse\\:connect], [hx-trigger*='every']");
document.addEventListener("htmx:before:request", ({ target, detail }) => {
  if (!isQuiet(target)) begin(detail?.ctx ?? target);
});
for (const name of ["htmx:after:request", "htmx:finally:request", "htmx:error"])
  document.addEventListener(name, ({ target, detail }) => {
    end(detail?.ctx ?? target);
  });

// A link or a form leads away: the bar goes with this page. A download leaves the page where it is.
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (link.hasAttribute("download") || link.target || link.origin !== location.origin || link.hasAttribute("hx-get")) return;
  if (link.pathname.startsWith("/v1/")) return;
  if (link.hash && link.pathname === location.pathname && link.search === location.search) return;
  // Modules that were loaded later may still take the click for themselves.
  setTimeout(() => event.defaultPrevented || begin("page"));
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.matches("[hx-get], [hx-post]")) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  form.setAttribute("aria-busy", "true");
  begin("page");
});
// Back in the browser's cache: as it was before it was left.
addEventListener("pageshow", () => {
  running.clear();
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    form.removeAttribute("aria-busy");
  }
  show();
});
