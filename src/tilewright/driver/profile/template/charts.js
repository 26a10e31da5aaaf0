// Roofline and memory.

function powersOfTen(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) found.push(10 ** power);
  return found;
}
const powerText = (value) => (value >= 0.01 && value < 1e5 ? String(Number(value.toPrecision(1))) : value.toExponential(0));

function drawRoofline() {
  const place = byId("roofline-chart");
  const limits = data.limits;
  const shown = data.kernels.map((kernel, number) => ({ kernel, number })).filter(({ kernel }) => kernel.operations > 0 && kernel.seconds > 0);
  if (!limits || shown.length === 0) {
    place.replaceChildren(element("p", { class: "empty" }, "No kernel here does arithmetic that could be compared."));
    return;
  }
  const width = Math.max(300, place.clientWidth), height = 380;
  const left = 50, right = 16, top = 26, bottom = 44;
  const peaks = Object.entries(limits.peaks).map(([dtype, rate]) => [dtype, rate / 1e9]);
  const peak = Math.max(...peaks.map(([, rate]) => rate));
  const intensity = ({ kernel }) => kernel.operations / kernel.bytes;
  const memory = limits.bandwidths[limits.bandwidths.length - 1].bytes_per_second / 1e9;
  const lowX = Math.min(0.1, ...shown.map(intensity)) / 1.5;
  const highX = Math.max((peak / memory) * 4, ...shown.map(intensity)) * 1.5;
  const lowY = Math.min(peak / 100, ...shown.map(({ kernel }) => kernel.gflops)) / 1.6;
  const highY = Math.max(peak, ...shown.map(({ kernel }) => kernel.gflops)) * 1.6;
  const x = (value) => left + (Math.log(value / lowX) / Math.log(highX / lowX)) * (width - left - right);
  const y = (value) => height - bottom - (Math.log(value / lowY) / Math.log(highY / lowY)) * (height - top - bottom);
  const inside = (value, low, high) => value >= low && value <= high;

  const svg = drawing("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Roofline of the kernels" });
  for (const value of powersOfTen(lowX, highX).filter((one) => inside(one, lowX, highX))) {
    svg.append(drawing("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height - bottom }));
    svg.append(drawing("text", { x: x(value), y: height - bottom + 16, "text-anchor": "middle" }, powerText(value)));
  }
  for (const value of powersOfTen(lowY, highY).filter((one) => inside(one, lowY, highY))) {
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(drawing("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, powerText(value)));
  }
  svg.append(drawing("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "operations a byte"));
  svg.append(drawing("text", { x: 4, y: 13 }, "GFLOP/s"));
  const ridges = limits.bandwidths.map((one) => peak / (one.bytes_per_second / 1e9));
  const firstRidge = Math.max(lowX, Math.min(...ridges));
  for (const [dtype, rate] of peaks) {
    svg.append(drawing("line", { class: rate === peak ? "ceiling" : "slope", x1: x(firstRidge), x2: width - right, y1: y(rate), y2: y(rate) }));
    const unit = peaks.length > 1 ? `GFLOP/s ${dtype}` : "GFLOP/s";
    svg.append(drawing("text", { class: "label", x: width - right - 4, y: y(rate) - 7, "text-anchor": "end" }, `${significant(rate)} ${unit}`));
  }
  for (const [index, level] of limits.bandwidths.entries()) {
    const speed = level.bytes_per_second / 1e9;
    const ridge = peak / speed;
    const from = Math.max(lowX, lowY / speed), to = Math.min(ridge, highX);
    if (from >= to) continue;
    const isMemory = level.capacity_bytes === null;
    svg.append(drawing("line", { class: isMemory ? "ceiling" : "slope", x1: x(from), y1: y(from * speed), x2: x(to), y2: y(to * speed) }));
    const at = Math.exp(Math.log(from) + (Math.log(to) - Math.log(from)) * (index % 2 === 0 ? 0.62 : 0.3));
    const angle = (Math.atan2(y(to * speed) - y(from * speed), x(to) - x(from)) * 180) / Math.PI;
    svg.append(drawing("text", {
      class: isMemory ? "label" : "", "text-anchor": "middle",
      transform: `translate(${x(at)} ${y(at * speed)}) rotate(${angle}) translate(0 -6)`,
    }, `${level.level} ${significant(speed)} GB/s`));
  }
  // The large ones first, so that small ones stay within reach.
  for (const { kernel, number } of shown) {
    svg.append(drawing("circle", {
      class: `dot ${kernel.boundBy === "compute" ? "compute" : ""} ${number === chosen ? "chosen" : ""}`,
      cx: x(kernel.operations / kernel.bytes), cy: y(kernel.gflops), r: 4 + 16 * Math.sqrt(kernel.share),
      "data-kernel": number, onclick: () => openKernel(number), ...tipped(kernel.shortName, () => kernelLines(kernel)),
    }));
  }
  place.replaceChildren(svg);
}

function drawMemory() {
  const place = byId("memory-chart");
  const memory = data.memory;
  const count = memory.steps.length;
  if (count === 0 || memory.arena === 0) {
    place.replaceChildren(element("p", { class: "empty" }, data.executor === "vm" ? "Allocated during the run." : "The model needs no memory for intermediate tensors."));
    return;
  }
  const width = Math.max(300, place.clientWidth), left = 70, right = 12;
  const liveTop = 26, liveHeight = 130, mapTop = liveTop + liveHeight + 44, mapHeight = 136, height = mapTop + mapHeight + 40;
  const x = (step) => left + (step / count) * (width - left - right);
  const high = Math.max(memory.arena, memory.peak) * 1.08;
  const y = (bytes) => liveTop + liveHeight - (bytes / high) * liveHeight;
  const at = (offset) => mapTop + mapHeight - (offset / memory.arena) * mapHeight;
  // The number of kernels that ran before a node.
  const before = new Map(memory.steps.map((node, index) => [node, index]));
  const position = (node) => {
    let low = 0, top = count;
    while (low < top) {
      const middle = (low + top) >> 1;
      if (memory.steps[middle] < node) low = middle + 1; else top = middle;
    }
    return before.has(node) ? before.get(node) : low;
  };
  const svg = drawing("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Memory in use over one run" });
  for (const part of [0, 0.5, 1]) {
    const bytes = memory.arena * part;
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - right, y1: y(bytes), y2: y(bytes) }));
    svg.append(drawing("text", { x: left - 8, y: y(bytes) + 4, "text-anchor": "end" }, bytesText(bytes)));
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - right, y1: at(bytes), y2: at(bytes) }));
    svg.append(drawing("text", { x: left - 8, y: at(bytes) + 4, "text-anchor": "end" }, bytesText(bytes)));
  }
  let path = `M${x(0)} ${y(0)}`;
  memory.live.forEach((bytes, step) => { path += `V${y(bytes)}H${x(step + 1)}`; });
  svg.append(drawing("path", { class: "live", d: `${path}V${y(0)}Z` }));
  svg.append(drawing("line", { class: "arena", x1: left, x2: width - right, y1: y(memory.arena), y2: y(memory.arena) }));
  svg.append(drawing("text", { class: "label", x: left, y: 13 }, "In use while each kernel runs; dashed: the arena"));
  svg.append(drawing("text", { class: "label", x: left, y: mapTop - 12 }, "Where tensors lie in the arena"));
  for (const [offset, bytes, first, last, name] of memory.blocks) {
    const from = x(position(first)), to = x(Math.min(count, position(last) + 1));
    const top = at(offset + bytes);
    svg.append(drawing("rect", {
      class: "block", x: from, y: top, width: Math.max(1.5, to - from), height: Math.max(1.5, at(offset) - top),
      ...tipped(name, () => [bytesText(bytes), `kernels ${position(first) + 1} to ${Math.min(count, position(last) + 1)} of ${count}`]),
    }));
  }
  for (const step of new Set([0, Math.floor(count / 2), count])) {
    const anchor = step === 0 ? "start" : step === count ? "end" : "middle";
    svg.append(drawing("text", { x: x(step), y: mapTop + mapHeight + 16, "text-anchor": anchor }, String(step)));
  }
  svg.append(drawing("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "kernels run"));
  for (const [step, node] of memory.steps.entries()) {
    const run = data.steps[step];
    const title = run && run.node === node ? data.kernels[run.kernel].shortName : `node ${node}`;
    svg.append(drawing("rect", {
      x: x(step), y: liveTop, width: Math.max(1, x(step + 1) - x(step)), height: liveHeight, fill: "transparent",
      ...tipped(title, () => [`${bytesText(memory.live[step])} in use`, run ? run.modelNodes.join(", ") : ""]),
    }));
  }
  place.replaceChildren(svg);
}
