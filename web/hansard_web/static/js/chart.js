// Charts: a crosshair with figures, arrow keys from point to point, and a range chosen by drag or
// by Shift and arrows. A range opens the same page for that time; a point opens its runs.
const tip = document.createElement("div");
tip.className = "chart-tip";
tip.hidden = true;
document.body.append(tip);

const charts = [...document.querySelectorAll("[data-chart]")];
const pointsOf = new Map(charts.map((chart) => [chart, [...chart.querySelectorAll("a")]]));

const mark = (points, name, isIn) => points.forEach((one, at) => one.classList.toggle(name, isIn(at)));

const show = (point, index) => {
  tip.textContent = point.dataset.title;
  tip.hidden = false;
  const box = point.getBoundingClientRect();
  const left = box.left + box.width / 2 + 12;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 4;
  tip.style.left = `${Math.max(4, left > room ? box.left - tip.offsetWidth - 12 : left)}px`;
  tip.style.top = `${Math.max(4, Math.min(box.top, innerHeight - tip.offsetHeight - 4))}px`;
  for (const points of pointsOf.values()) mark(points, "is-at", (at) => at === index);
};

const hide = () => {
  tip.hidden = true;
  for (const points of pointsOf.values()) mark(points, "is-at", () => false);
};

const openRange = (chart, points, from, to) => {
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  const address = new URL(chart.dataset.page || location.href, location.href);
  address.searchParams.delete("period");
  // A point leads to the runs of its time.
  for (const [name, at] of [["since", first], ["until", last]])
    address.searchParams.set(name, new URL(points[at].href.baseVal, location.href).searchParams.get(name));
  location.assign(address);
};

for (const [chart, points] of pointsOf) {
  if (!points.length) continue;
  let from = null; // where a range began
  let to = null;
  let dragged = false;
  const select = (start, end) => {
    [from, to] = [start, end];
    const isRange = from !== null && from !== to;
    mark(points, "is-in", (at) => isRange && at >= Math.min(from, to) && at <= Math.max(from, to));
    if (isRange) announce(`${label(Math.min(from, to))} to ${label(Math.max(from, to))}; Enter narrows to it`);
  };
  const label = (at) => points[at].dataset.title.split("\n", 1)[0];
  const announce = (text) => {
    const say = document.getElementById("say");
    if (say) say.textContent = text;
  };
  const indexAt = (x) => {
    const box = chart.getBoundingClientRect();
    const at = Math.floor(((x - box.left) / box.width) * points.length);
    return Math.min(Math.max(at, 0), points.length - 1);
  };

  points.forEach((point, index) => {
    const title = point.querySelector("title"); // the tooltip stands for it
    point.dataset.title = title.textContent;
    point.setAttribute("aria-label", title.textContent.replaceAll("\n", ", "));
    title.remove();
    point.draggable = false;
    point.setAttribute("tabindex", index === points.length - 1 ? "0" : "-1");
    point.addEventListener("focus", () => show(point, index));
    point.addEventListener("blur", hide);
    point.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: points.length - 1 };
      if (event.key in steps) {
        const next = Math.min(Math.max(steps[event.key], 0), points.length - 1);
        if (event.shiftKey) select(from ?? index, next);
        else select(null, null);
        point.setAttribute("tabindex", "-1");
        points[next].setAttribute("tabindex", "0");
        points[next].focus();
      } else if (event.key === "Enter" && from !== null && from !== to) openRange(chart, points, from, to);
      else if (event.key === "Enter") location.assign(point.href.baseVal);
      else if (event.key === "Escape" && from !== null) select(null, null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  });

  chart.addEventListener("pointerdown", (event) => {
    if (event.button === 0) [from, to, dragged] = [indexAt(event.clientX), null, false];
  });
  chart.addEventListener("pointermove", (event) => {
    const index = indexAt(event.clientX);
    show(points[index], index);
    if (from === null || !event.buttons) return;
    if (index === from && !dragged) return;
    if (!dragged) chart.setPointerCapture(event.pointerId);
    dragged = true;
    select(from, index);
  });
  chart.addEventListener("pointerup", () => {
    if (dragged && from !== to) openRange(chart, points, from, to);
    else select(null, null);
  });
  chart.addEventListener("pointercancel", () => { dragged = false; select(null, null); });
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("dragstart", (event) => event.preventDefault());
  chart.addEventListener("click", (event) => {
    if (dragged) event.preventDefault();
    dragged = false;
  }, true);
}
