// What every part uses: the data, elements, texts for numbers, the tooltip, and what is chosen.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);

// Texts become text nodes: nothing that comes from the model is ever markup.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const drawing = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const significant = (value, digits = 3) => {
  if (value >= 10 ** digits) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
};
function timeText(seconds) {
  for (const [limit, scale, unit] of [[1e-6, 1e9, "ns"], [1e-3, 1e6, "µs"], [1, 1e3, "ms"]]) {
    if (seconds < limit) return `${significant(seconds * scale)} ${unit}`;
  }
  return `${significant(seconds)} s`;
}
function bytesText(bytes) {
  let amount = bytes;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (amount < 1024) return `${significant(amount)} ${unit}`;
    amount /= 1024;
  }
  return `${significant(amount)} GiB`;
}
const shareText = (share) => (share === null ? "–" : `${(share * 100).toFixed(1)} %`);
const rateText = (rate) => (rate === null ? "–" : significant(rate));
const countText = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const shortened = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 1)}…`);
const hue = (number) => Math.round((number * 137.508) % 360);
const kernelColor = (number) => `hsl(${hue(number)} 62% 55%)`;

const tip = byId("tip");
function showTip(event, title, lines) {
  tip.replaceChildren(element("b", {}, title), ...lines.filter(Boolean).map((line) => element("div", {}, line)));
  tip.hidden = false;
  moveTip(event);
}
function moveTip(event) {
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
  const below = event.clientY + 16;
  const top = below + box.height > window.innerHeight - 8 ? event.clientY - box.height - 12 : below;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}
const hideTip = () => { tip.hidden = true; };
const tipped = (title, lines) => ({
  onpointerenter: (event) => { if (event.pointerType !== "touch") showTip(event, title, lines()); },
  onpointermove: moveTip,
  onpointerleave: hideTip,
});

function kernelLines(kernel) {
  return [
    `${timeText(kernel.seconds)} in ${countText(kernel.calls, "call", "calls")}, ${shareText(kernel.share)} of the time`,
    kernel.gflops === null ? "" : `${rateText(kernel.gflops)} GFLOP/s, ${rateText(kernel.gbytes)} GB/s`,
    kernel.ofLimit === null ? "" : `${shareText(kernel.ofLimit)} of the limit (${kernel.boundBy})`,
    shortened(kernel.modelNodes.join(", "), 160),
  ];
}

// The kernel that is looked at; every part marks it.
let chosen = null;
const whenChosen = [];
function choose(kernel) {
  chosen = kernel;
  for (const react of whenChosen) react(kernel);
}

// Drawings are made anew when the width of the page changes.
const whenResized = [];
let resizing = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => whenResized.forEach((draw) => draw()));
});
function drawn(draw) {
  whenResized.push(draw);
  draw();
}
