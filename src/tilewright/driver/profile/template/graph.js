// The graph: drawn once, moved by its outer group.

const graphView = { name: null, svg: null, group: null, nodes: [], scale: 1, x: 0, y: 0, matches: [], current: -1 };
const canvas = byId("canvas");

// A smooth line through points that go down the page; beside the nodes that it passes it goes straight.
function edgePath(points, halfHeight) {
  const last = points.length - 1;
  let path = `M${points[0][0]} ${points[0][1] + halfHeight}`;
  for (let index = 1; index <= last; index++) {
    const [ax, ay] = points[index - 1], [bx, by] = points[index];
    const from = ay + halfHeight, to = by - halfHeight, middle = (from + to) / 2;
    path += ax === bx ? `V${to}` : `C${ax} ${middle} ${bx} ${middle} ${bx} ${to}`;
    if (index < last) path += `V${by + halfHeight}`;
  }
  return path;
}

function nodeTip(node) {
  const kernel = node.kernel === null ? null : data.kernels[node.kernel];
  const step = node.step === null ? null : data.steps.find((one) => one.node === node.step);
  return [
    node.modelNodes.join(", "),
    node.detail,
    node.backend ? `computed by ${node.backend}` : "",
    step ? `${timeText(step.seconds)}, ${shareText(step.seconds / data.kernelSeconds)} of the time` : "",
    kernel && !step ? `computed by ${kernel.shortName}` : "",
  ];
}

// Every backend has a colour, the same in both graphs.
const drawnBackends = Object.values(data.graphs).flatMap((graph) => (graph ? graph.nodes.map((node) => node.backend) : []));
const backends = [...new Set([...drawnBackends, ...(data.partition ? data.partition.backends : [])])].filter(Boolean).sort();
const backendColor = (name) => `hsl(${hue(backends.indexOf(name) + 4)} 70% 45%)`;

function backendLegend(graph) {
  const count = (name) => graph.nodes.filter((node) => node.backend === name).length;
  return backends.filter(count).map((name) =>
    element("span", { style: `color: ${backendColor(name)}; font-weight: 600; margin-left: 1em` }, `■ ${name}: ${count(name)}`));
}

function drawGraph(name) {
  const graph = data.graphs[name];
  const [width, height] = data.nodeSize;
  const group = drawing("g");
  const svg = drawing("svg", { role: "img", "aria-label": "Graph of the model" }, group);
  for (const [, , points] of graph.edges) group.append(drawing("path", { class: "edge", d: edgePath(points, height / 2) }));
  const times = new Map(data.steps.map((step) => [step.node, step.seconds]));
  const longest = Math.max(1e-12, ...times.values());
  graphView.nodes = graph.nodes.map((node, number) => {
    const [cx, cy] = node.at;
    const left = cx - width / 2, top = cy - height / 2;
    const box = drawing("g", {
      class: `node ${node.kind}`, "data-node": number, ...tipped(node.label, () => nodeTip(node)),
    });
    const heat = node.step === null ? 0 : (times.get(node.step) || 0) / longest;
    const fill = heat > 0 ? `fill: color-mix(in srgb, var(--memory) ${Math.round(heat * 55)}%, var(--surface));` : "";
    const line = node.backend ? `stroke: ${backendColor(node.backend)}; stroke-width: 3;` : "";
    const style = fill + line || null;
    box.append(drawing("rect", { class: "body", x: left, y: top, width, height, rx: 7, style }));
    if (node.kernel !== null) {
      box.append(drawing("rect", { x: left + 5, y: top + 7, width: 4, height: height - 14, rx: 2, fill: kernelColor(node.kernel) }));
    }
    const small = node.step !== null && times.get(node.step)
      ? `${timeText(times.get(node.step))} · ${node.modelNodes.join(", ")}`
      : node.modelNodes.join(", ") || node.detail;
    box.append(drawing("text", { x: left + 16, y: cy - 3 }, shortened(node.label, 22)));
    box.append(drawing("text", { class: "small", x: left + 16, y: cy + 13 }, shortened(small, 27)));
    group.append(box);
    return { node, box, text: [node.label, node.detail, ...node.modelNodes].join("\n").toLowerCase() };
  });
  Object.assign(graphView, { name, svg, group });
  canvas.replaceChildren(svg);
  byId("graph-note").textContent = name === "before"
    ? `${countText(graph.nodes.length, "node", "nodes")} before fusion. Operators with a stripe of one colour become one kernel. Click one for its code.`
    : `${countText(graph.nodes.length, "node", "nodes")} after fusion. The warmer a kernel, the more time it takes. Click one for its code.`;
  byId("graph-note").append(...backendLegend(graph));
  for (const button of byId("graph-choice").children) button.setAttribute("aria-pressed", String(button.dataset.graph === name));
  markChosen();
  startView();
  search(byId("search").value);
}

function applyView() {
  graphView.group.setAttribute("transform", `translate(${graphView.x} ${graphView.y}) scale(${graphView.scale})`);
  graphView.svg.classList.toggle("far", graphView.scale < 0.28);
}
function fitView() {
  const graph = data.graphs[graphView.name];
  const scale = Math.min((canvas.clientWidth - 40) / graph.width, (canvas.clientHeight - 40) / graph.height, 1.25);
  graphView.scale = Math.max(scale, 0.01);
  graphView.x = (canvas.clientWidth - graph.width * graphView.scale) / 2;
  graphView.y = Math.max(20, (canvas.clientHeight - graph.height * graphView.scale) / 2);
  applyView();
}
// Begins at the top, large enough to read.
function startView() {
  const graph = data.graphs[graphView.name];
  fitView();
  if (graphView.scale >= 0.75) return;
  graphView.scale = Math.max(0.75, Math.min(1, (canvas.clientWidth - 40) / graph.width));
  const first = graph.nodes.length ? graph.nodes[0].at[0] : 0;
  const wide = graph.width * graphView.scale;
  graphView.x = wide < canvas.clientWidth ? (canvas.clientWidth - wide) / 2 : canvas.clientWidth / 2 - first * graphView.scale;
  graphView.y = 20;
  applyView();
}
function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const scale = Math.min(4, Math.max(0.01, graphView.scale * factor));
  const change = scale / graphView.scale;
  graphView.x = x - (x - graphView.x) * change;
  graphView.y = y - (y - graphView.y) * change;
  graphView.scale = scale;
  applyView();
}
function centre(node) {
  graphView.scale = Math.max(graphView.scale, 0.8);
  graphView.x = canvas.clientWidth / 2 - node.at[0] * graphView.scale;
  graphView.y = canvas.clientHeight / 2 - node.at[1] * graphView.scale;
  applyView();
}

function search(text) {
  const wanted = text.trim().toLowerCase();
  graphView.matches = [];
  for (const entry of graphView.nodes) {
    const found = wanted !== "" && entry.text.includes(wanted);
    entry.box.classList.toggle("match", found);
    entry.box.classList.remove("current");
    if (found) graphView.matches.push(entry);
  }
  graphView.svg.classList.toggle("searching", wanted !== "");
  graphView.current = -1;
  byId("matches").textContent = wanted === "" ? "" : String(graphView.matches.length);
  if (graphView.matches.length) nextMatch(1);
}
function nextMatch(direction) {
  const count = graphView.matches.length;
  if (count === 0) return;
  if (graphView.current >= 0) graphView.matches[graphView.current].box.classList.remove("current");
  graphView.current = (graphView.current + direction + count) % count;
  const entry = graphView.matches[graphView.current];
  entry.box.classList.add("current");
  centre(entry.node);
  byId("matches").textContent = `${graphView.current + 1} of ${count}`;
}
function markChosen() {
  for (const { node, box } of graphView.nodes) box.classList.toggle("chosen", chosen !== null && node.kernel === chosen);
}
whenChosen.push(markChosen);

function startGraph() {
  const names = [["before", "Before fusion"], ["after", "After fusion"]].filter(([name]) => data.graphs[name]);
  byId("graph-choice").replaceChildren(...names.map(([name, title]) =>
    element("button", { type: "button", "data-graph": name, onclick: () => drawGraph(name) }, title)));
  byId("zoom-in").addEventListener("click", () => zoom(1.3));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.3));
  byId("zoom-fit").addEventListener("click", fitView);
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
  });
  canvas.addEventListener("wheel", (event) => {
    // Without a key the wheel scrolls the page, unless the graph is in use.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = 60;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "0") fitView();
    else if (moves[event.key]) {
      graphView.x += moves[event.key][0];
      graphView.y += moves[event.key][1];
      applyView();
    } else return;
    event.preventDefault();
  });

  const pointers = new Map();
  let travelled = 0, pressed = null;
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    pressed = event.target.closest(".node");
    travelled = 0;
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const others = [...pointers.entries()].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    const dx = event.clientX - before[0], dy = event.clientY - before[1];
    travelled += Math.abs(dx) + Math.abs(dy);
    if (others.length) {
      const [ox, oy] = others[0];
      const box = canvas.getBoundingClientRect();
      const was = Math.hypot(before[0] - ox, before[1] - oy), is = Math.hypot(event.clientX - ox, event.clientY - oy);
      if (was > 0) zoom(is / was, (event.clientX + ox) / 2 - box.left, (event.clientY + oy) / 2 - box.top);
    } else {
      graphView.x += dx;
      graphView.y += dy;
      applyView();
      if (travelled > 4) { canvas.classList.add("dragging"); hideTip(); }
    }
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  const released = (event) => {
    pointers.delete(event.pointerId);
    canvas.classList.remove("dragging");
    if (event.type === "pointerup" && pressed && travelled <= 4) openNode(graphView.nodes[Number(pressed.dataset.node)].node);
    pressed = null;
  };
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  drawGraph("after");
}
