// The drawer: what is known of a kernel, and its code in every form.

const drawer = byId("drawer");
const shownCode = { kernel: null, form: "relay", text: "" };
let openedFrom = null;

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function facts(pairs) {
  byId("drawer-facts").replaceChildren(...pairs.filter(([, value]) => value).map(([name, value, wide]) =>
    element("div", { class: wide ? "wide" : null }, element("dt", {}, name), element("dd", {}, value))));
}

function openDrawer(kind, title) {
  if (drawer.hidden) openedFrom = document.activeElement;
  byId("drawer-kind").textContent = kind;
  byId("drawer-title").textContent = title;
  drawer.hidden = false;
  hideTip();
}

function openKernel(number) {
  const kernel = data.kernels[number];
  choose(number);
  openDrawer("Kernel", kernel.shortName);
  facts([
    ["Time", `${timeText(kernel.seconds)} (${shareText(kernel.share)})`],
    ["Calls", String(kernel.calls)],
    ["Throughput", kernel.gflops === null ? "" : `${rateText(kernel.gflops)} GFLOP/s`],
    ["Bandwidth", kernel.gbytes === null ? "" : `${rateText(kernel.gbytes)} GB/s`],
    ["Of the limit", kernel.ofLimit === null ? "" : `${shareText(kernel.ofLimit)}, ${kernel.boundBy}`],
    ["Work", kernel.operations === null ? "" : `${significant(kernel.operations / 1e6)} MFLOP in ${kernel.arithmetic} on ${bytesText(kernel.bytes)}`],
    ["As defined", kernel.flops > kernel.operations ? `${significant(kernel.flops / 1e6)} MFLOP; Winograd does fewer` : ""],
    ["Nodes of the model", kernel.modelNodes.join(", "), true],
    ["Results", kernel.shapes.join(", "), true],
    ["Symbol", kernel.name, true],
  ]);
  shownCode.kernel = number;
  showForms(data.code[number]);
  byId("drawer-close").focus({ preventScroll: true });
}

function openNode(node) {
  if (node.kernel !== null) {
    openKernel(node.kernel);
    return;
  }
  choose(null);
  openDrawer(node.kind === "input" ? "Input" : "Operator", node.label);
  facts([["Type", node.detail, true], ["Nodes of the model", node.modelNodes.join(", "), true]]);
  showForms(null);
}

function showForms(code) {
  const forms = code ? Object.keys(data.forms).filter((form) => code[form]) : [];
  byId("code-forms").replaceChildren(...forms.map((form) =>
    element("button", { type: "button", role: "tab", "data-form": form, onclick: () => showCode(code, form) }, data.forms[form])));
  byId("code-forms").hidden = byId("code-copy").hidden = forms.length === 0;
  byId("code").hidden = forms.length === 0;
  if (forms.length) showCode(code, forms.includes(shownCode.form) ? shownCode.form : forms[0]);
}

async function showCode(code, form) {
  shownCode.form = form;
  const kernel = shownCode.kernel;
  for (const button of byId("code-forms").children) button.setAttribute("aria-selected", String(button.dataset.form === form));
  const text = await unpacked(code[form]);
  // Another kernel or form may have been chosen since.
  if (shownCode.kernel !== kernel || shownCode.form !== form) return;
  shownCode.text = text;
  byId("code").textContent = text;
  byId("code").dataset.shown = form;
  byId("code").scrollTop = 0;
}

function closeDrawer() {
  if (drawer.hidden) return;
  drawer.hidden = true;
  choose(null);
  if (openedFrom) openedFrom.focus({ preventScroll: true });
}

byId("drawer-close").addEventListener("click", closeDrawer);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeDrawer(); });
byId("code-copy").addEventListener("click", async () => {
  const button = byId("code-copy");
  try {
    await navigator.clipboard.writeText(shownCode.text);
    button.textContent = "Copied";
  } catch {
    // A page from a file may not write the clipboard in every browser: then the text is selected.
    window.getSelection().selectAllChildren(byId("code"));
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});
