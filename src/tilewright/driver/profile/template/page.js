// The page: summary, table, passes, and the start of everything.

function tile(name, value, unit, detail) {
  return element("div", { class: "tile" },
    element("div", { class: "name" }, name),
    element("div", { class: "value" }, value, unit ? element("small", {}, ` ${unit}`) : null),
    element("div", { class: "detail" }, detail));
}
function split(text) {
  const at = text.lastIndexOf(" ");
  return [text.slice(0, at), text.slice(at + 1)];
}

function limitsText(limits) {
  if (!limits) return "";
  if (limits.unit === "thread") return "Limits were measured on this machine, just before and after the model.";
  return "Peak rates are those of the device's highest clock; bandwidths were measured, just before and after the model.";
}

function drawSummary() {
  document.title = `${data.model} · Tilewright profile`;
  byId("model").textContent = data.model;
  const limits = data.limits;
  byId("about").textContent = [
    data.inputs.join(", "),
    limits ? `${limits.processor}, ${countText(limits.threads, limits.unit, `${limits.unit}s`)}` : "",
    data.target,
  ].filter(Boolean).join(" · ");
  const tiles = [tile("One run", ...split(timeText(data.runSeconds)), `median of ${data.runs}; kernels ${timeText(data.kernelSeconds)}`)];
  if (data.operations !== null && data.kernelSeconds > 0) {
    const rate = data.operations / data.kernelSeconds / 1e9;
    const defined = data.flops > data.operations
      ? `; ${significant(data.flops / data.kernelSeconds / 1e9)} as the model defines them (Winograd does fewer)` : "";
    const beside = limits ? `of ${significant(limits.flops_per_second / 1e9)} at the float32 peak` : `${significant(data.operations / 1e9)} GFLOP`;
    tiles.push(tile("Throughput", significant(rate), "GFLOP/s", `${beside}${defined}`));
  }
  if (data.ofLimit !== null) tiles.push(tile("Of the machine's limit", (data.ofLimit * 100).toFixed(0), "%", "all kernels, by compute and memory"));
  tiles.push(tile("Kernels", String(data.kernels.length), "", `${countText(data.steps.length, "call", "calls")} a run`));
  if (data.executor === "vm") tiles.push(tile("Parameters", ...split(bytesText(data.memory.parameters)), "tensors are allocated during the run"));
  else tiles.push(tile("Memory", ...split(bytesText(data.memory.arena)), `and ${bytesText(data.memory.parameters)} of parameters`));
  if (data.compiling) tiles.push(tile("Compiling", ...split(timeText(data.compiling.seconds)), "one process, nothing from the cache"));
  byId("tiles").replaceChildren(...tiles);
  byId("footer").textContent = `Tilewright ${data.version} · ${data.system}. ${limitsText(limits)}`;
  byId("sections").replaceChildren(...[...document.querySelectorAll("section[data-title]")].filter((one) => !one.hidden)
    .map((one) => element("a", { href: `#${one.id}` }, one.dataset.title)));
}

const COLUMNS = [
  ["Kernel", (kernel) => kernel.shortName],
  ["", null],
  ["Time", (kernel) => kernel.seconds],
  ["Share", (kernel) => kernel.share],
  ["Calls", (kernel) => kernel.calls],
  ["GFLOP/s", (kernel) => kernel.gflops],
  ["GB/s", (kernel) => kernel.gbytes],
  ["Of limit", (kernel) => kernel.ofLimit],
  ["Bound by", (kernel) => kernel.boundBy],
];
const tableState = { column: 2, descending: true, filter: "", all: false };
const FIRST_ROWS = 15;
const nodesText = (names, count) => names.slice(0, count).join(", ") + (names.length > count ? ` and ${names.length - count} more` : "");

function drawTable() {
  const key = COLUMNS[tableState.column][1];
  const sign = tableState.descending ? -1 : 1;
  const wanted = tableState.filter.trim().toLowerCase();
  const rows = data.kernels.map((kernel, number) => ({ kernel, number }))
    .filter(({ kernel }) => [kernel.name, ...kernel.modelNodes].join("\n").toLowerCase().includes(wanted));
  rows.sort((first, second) => {
    const a = key(first.kernel), b = key(second.kernel);
    if (a === b) return first.number - second.number;
    if (a === null) return 1;
    if (b === null) return -1;
    return a < b ? -sign : sign;
  });
  const longest = Math.max(1e-12, ...data.kernels.map((kernel) => kernel.seconds));
  const head = COLUMNS.map(([title, value], index) => {
    if (value === null) return element("th", { class: "bar" });
    const sort = index === tableState.column ? (tableState.descending ? "descending" : "ascending") : null;
    return element("th", { scope: "col", "aria-sort": sort }, element("button", { onclick: () => {
      tableState.descending = index === tableState.column ? !tableState.descending : index !== 0;
      tableState.column = index;
      drawTable();
    } }, title));
  });
  const shown = tableState.all || wanted || rows.length <= FIRST_ROWS + 2 ? rows : rows.slice(0, FIRST_ROWS);
  const body = shown.map(({ kernel, number }) => element("tr", { class: number === chosen ? "chosen" : null, "data-kernel": number, onclick: () => openKernel(number) },
    element("td", { class: "name" }, element("button", { type: "button" }, kernel.shortName),
      element("small", {}, shortened(nodesText(kernel.modelNodes, 3), 120))),
    element("td", { class: "bar" }, element("span", { class: "track" },
      element("span", { class: `fill ${kernel.boundBy === "compute" ? "" : "memory"}`, style: `width: ${(kernel.seconds / longest) * 100}%` }))),
    element("td", {}, timeText(kernel.seconds)),
    element("td", {}, shareText(kernel.share)),
    element("td", {}, String(kernel.calls)),
    element("td", {}, rateText(kernel.gflops)),
    element("td", {}, rateText(kernel.gbytes)),
    element("td", {}, shareText(kernel.ofLimit)),
    element("td", {}, kernel.boundBy ? element("span", { class: `bound ${kernel.boundBy === "compute" ? "compute" : ""}` }, kernel.boundBy) : "–")));
  if (shown.length < rows.length) {
    const rest = element("button", { type: "button", class: "plain", onclick: () => { tableState.all = true; drawTable(); } }, `Show ${rows.length - shown.length} more`);
    body.push(element("tr", { class: "more" }, element("td", { colspan: COLUMNS.length }, rest)));
  }
  const seconds = rows.reduce((sum, { kernel }) => sum + kernel.seconds, 0);
  const share = rows.reduce((sum, { kernel }) => sum + kernel.share, 0);
  const calls = rows.reduce((sum, { kernel }) => sum + kernel.calls, 0);
  byId("kernel-table").replaceChildren(
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...body),
    element("tfoot", {}, element("tr", {}, element("td", {}, wanted ? `${rows.length} of ${data.kernels.length} kernels` : "All kernels"), element("td", { class: "bar" }),
      element("td", {}, timeText(seconds)), element("td", {}, shareText(share)), element("td", {}, String(calls)), element("td", { colspan: 4 }))));
}

function drawPasses() {
  const section = byId("compile");
  if (!data.compiling) {
    section.hidden = true;
    return;
  }
  const passes = data.compiling.passes, total = data.compiling.seconds;
  const longest = Math.max(1e-12, ...passes.map(([, , seconds]) => seconds));
  byId("compile-note").textContent = `${timeText(total)} in all. The time of a pass is without that of the passes it runs.`;
  const row = ([name, runs, seconds]) => element("div", { class: "pass" },
    element("span", { class: "name" }, name),
    element("span", { class: "track", title: countText(runs, "run", "runs") }, element("span", { class: "fill", style: `width: ${(seconds / longest) * 100}%` })),
    element("span", { class: "number" }, timeText(seconds)),
    element("span", { class: "soft" }, shareText(seconds / total)));
  const first = 15;
  const list = byId("pass-list");
  list.replaceChildren(...passes.slice(0, first).map(row));
  if (passes.length > first) {
    list.append(element("button", { type: "button", class: "plain", onclick: (event) => {
      event.target.replaceWith(...passes.slice(first).map(row));
    } }, `Show ${passes.length - first} more`));
  }
}

function start() {
  drawBackends();
  drawChoices();
  drawPasses();
  drawSummary();
  byId("kernels-note").textContent = "Blue: bound by compute; orange: by memory, at the level that its data fits. Click a row for the code.";
  byId("roofline-note").textContent = ["A dot is a kernel, its area the share of time. The lines are this machine's limits; operations are those really done.", ...data.notes].join(" ");
  byId("memory-note").textContent = data.executor === "vm" ? "The virtual machine allocates tensors as it runs: there is no plan to draw." : `${bytesText(data.memory.peak)} in use at most, in an arena of ${bytesText(data.memory.arena)}.`;
  byId("filter").addEventListener("input", (event) => { tableState.filter = event.target.value; drawTable(); });
  drawTable();
  whenChosen.push(() => {
    for (const row of document.querySelectorAll("#kernel-table tr[data-kernel]")) row.classList.toggle("chosen", Number(row.dataset.kernel) === chosen);
    for (const dot of document.querySelectorAll("#roofline-chart .dot")) dot.classList.toggle("chosen", Number(dot.dataset.kernel) === chosen);
  });
  drawn(drawRoofline);
  drawn(drawMemory);
  startGraph();
  document.documentElement.dataset.ready = "true";
}
start();
