// The page of a search: what it came to, a curve over its time, and its tasks.

const gainText = (gain) => `${gain >= 1 ? "+" : "−"}${Math.abs((gain - 1) * 100).toFixed(1)} %`;
const split = (text) => [text.split(" ")[0], text.split(" ").slice(1).join(" ")];
const tile = (name, value, unit, detail) => element("div", { class: "tile" },
  element("div", { class: "name" }, name),
  element("div", { class: "value" }, value, " ", element("small", {}, unit)),
  element("div", { class: "detail" }, detail));

function drawSummary() {
  document.title = `Tuning of ${data.model}`;
  byId("model").textContent = data.model;
  byId("about").textContent = `${data.target} · records in ${data.records}`;
  const tiles = [];
  if (data.tuned_seconds !== null) {
    tiles.push(tile("One run, tuned", ...split(timeText(data.tuned_seconds)), `untuned ${timeText(data.untuned_seconds)}; ${countText(data.runs, "run", "runs")} each, taking turns`));
    tiles.push(tile("Gain", (100 * (data.untuned_seconds / data.tuned_seconds - 1)).toFixed(1), "%", data.result));
  } else {
    tiles.push(tile("Result", "0", "%", data.result));
  }
  tiles.push(tile("Tasks improved", String(data.improved), `of ${data.tasks.length}`, `the model has ${countText(data.kernels, "kernel", "kernels")}`));
  tiles.push(tile("Candidates", data.trials.toLocaleString("en"), "", `${data.failures.toLocaleString("en")} failed; ${data.resumed.toLocaleString("en")} more from earlier runs`));
  tiles.push(tile("Time", ...split(timeText(data.seconds)), "building and comparing included"));
  byId("tiles").replaceChildren(...tiles);
  byId("footer").textContent = `Tilewright ${data.version}. A task counts as improved where the model as a whole bears it out.`;
}

function drawCurve() {
  const place = byId("curve-chart");
  const points = data.curve;
  if (points.length < 2) {
    place.replaceChildren(element("p", { class: "empty" }, "Nothing was searched."));
    return;
  }
  const width = Math.max(300, place.clientWidth), height = 300;
  const left = 70, right = 16, top = 20, bottom = 44;
  const end = points[points.length - 1][0];
  const values = points.map(([, , seconds]) => seconds);
  const low = Math.min(...values), high = Math.max(...values);
  // At least a tenth of the time is shown, so that small gains look small.
  const span = Math.max(high - low, 0.1 * high) * 1.1;
  const floor = Math.max(0, high - span);
  const x = (seconds) => left + (seconds / end) * (width - left - right);
  const y = (seconds) => top + ((high - seconds) / (high - floor)) * (height - top - bottom);
  const svg = drawing("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Kernel time over the search" });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const value = floor + (high - floor) * part;
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(drawing("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, timeText(value)));
    const at = end * part;
    svg.append(drawing("text", { x: x(at), y: height - bottom + 18, "text-anchor": part === 1 ? "end" : "middle" }, part === 0 ? "0" : timeText(at)));
  }
  svg.append(drawing("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "time of the search"));
  let path = `M${x(points[0][0])} ${y(points[0][2])}`;
  for (const [seconds, , value] of points.slice(1)) path += `H${x(seconds)}V${y(value)}`;
  svg.append(drawing("path", { class: "under", d: `${path}V${height - bottom}H${x(points[0][0])}Z` }));
  svg.append(drawing("path", { class: "curve", d: path }));
  for (const [index, [seconds, trials, value]] of points.entries()) {
    if (index > 0 && value === points[index - 1][2] && index + 1 < points.length) continue;
    svg.append(drawing("circle", { class: "dot compute", cx: x(seconds), cy: y(value), r: 4,
      ...tipped(timeText(value), () => [`after ${timeText(seconds)} and ${countText(trials, "candidate", "candidates")}`]) }));
  }
  place.replaceChildren(svg);
}

const COLUMNS = [
  ["Task", (task) => task.name],
  ["", null],
  ["Untuned", (task) => task.untuned_seconds],
  ["Best", (task) => task.best_seconds],
  ["Gain", (task) => task.gain],
  ["Calls", (task) => task.calls],
  ["Trials", (task) => task.trials],
  ["Failed", (task) => task.failures],
  ["Choices that changed", null],
];
const share = (task) => (task.untuned_seconds === null ? 0 : task.calls * task.untuned_seconds);
const tableState = { column: null, descending: true, filter: "" };

function drawTable() {
  const wanted = tableState.filter.trim().toLowerCase();
  const rows = data.tasks.filter((task) => `${task.name}\n${task.operator}`.toLowerCase().includes(wanted));
  const key = tableState.column === null ? share : COLUMNS[tableState.column][1];
  const sign = tableState.descending ? -1 : 1;
  rows.sort((first, second) => {
    const a = key(first), b = key(second);
    if (a === b) return 0;
    if (a === null) return 1;
    if (b === null) return -1;
    return a < b ? -sign : sign;
  });
  const longest = Math.max(1e-12, ...data.tasks.map(share));
  const head = COLUMNS.map(([title, value], index) => {
    if (value === null) return element("th", { class: title ? null : "bar" }, title);
    const sort = index === tableState.column ? (tableState.descending ? "descending" : "ascending") : null;
    return element("th", { scope: "col", "aria-sort": sort }, element("button", { onclick: () => {
      tableState.descending = index === tableState.column ? !tableState.descending : index !== 0;
      tableState.column = index;
      drawTable();
    } }, title));
  });
  const body = rows.map((task) => element("tr", {},
    element("td", { class: "name" }, element("code", {}, task.name), task.first_error ? element("small", { class: "bad" }, shortened(task.first_error, 200)) : null),
    element("td", { class: "bar" }, element("span", { class: "track" },
      element("span", { class: "fill", style: `width: ${(share(task) / longest) * 100}%` }))),
    element("td", {}, task.untuned_seconds === null ? "–" : timeText(task.untuned_seconds)),
    element("td", {}, task.best_seconds === null ? "–" : timeText(task.best_seconds)),
    element("td", { class: task.applied ? "faster" : null }, task.gain > 1 ? gainText(task.gain) : "–"),
    element("td", {}, String(task.calls)),
    element("td", {}, String(task.trials)),
    element("td", {}, task.failures ? String(task.failures) : ""),
    element("td", { class: "choices" }, Object.entries(task.choices).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", "))));
  byId("task-table").replaceChildren(element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

drawSummary();
byId("curve-note").textContent = "The sum over all tasks of calls times the best time, where each kernel was measured by itself.";
byId("tasks-note").textContent = "The bar is a task's share of the model's time, untuned. Green: used by the tuned model.";
byId("filter").addEventListener("input", (event) => { tableState.filter = event.target.value; drawTable(); });
drawTable();
drawn(drawCurve);
document.documentElement.dataset.ready = "true";
