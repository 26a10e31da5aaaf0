// What other code generators compute of the model, and why the rest is left to the compiler.

const backendMark = (name) => element("span", { class: "square", style: `background: ${backendColor(name)}` });

function operatorsText(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  return [...counts].map(([name, count]) => (count === 1 ? name : `${count} ${name}`)).join(", ");
}

function textRow(...cells) {
  return element("tr", {}, ...cells.map((cell) => element("td", { class: "text" }, ...[cell].flat())));
}

function textTable(id, titles, rows) {
  byId(id).replaceChildren(
    element("thead", {}, element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {}, ...rows));
}

function drawBackends() {
  const found = data.partition;
  if (!found) {
    byId("backends").hidden = true;
    return;
  }
  const times = Object.entries(found.seconds).map(([name, seconds]) => `${name} ${timeText(seconds)}`);
  byId("backends-note").textContent = `Chosen: ${found.chosen}.` + (times.length ? ` The whole model, by who computes it: ${times.join(", ")}.` : "");
  const seconds = (value) => (value === null ? "–" : timeText(value));
  textTable("part-table", ["Part", "Backend", "Operators", "By the backend", "Compiled", "Taken", "Why"], found.parts.map((part) =>
    textRow(part.symbol, [backendMark(part.backend), part.backend], operatorsText(part.operators), seconds(part.seconds),
      seconds(part.compiled_seconds), part.taken ? "yes" : "no", part.reason)));
  byId("part-table").hidden = !found.parts.length;
  byId("refused-note").textContent = found.refused.length ? "Left to the compiler, with every backend's reason:" : "Every operator can be taken.";
  textTable("refused-table", ["Operator", "Times", "Why no backend takes it"], found.refused.map((one) =>
    textRow(one.operator, String(one.count), one.reasons.map((reason) => element("div", {}, reason)))));
  byId("refused-table").hidden = !found.refused.length;
}
