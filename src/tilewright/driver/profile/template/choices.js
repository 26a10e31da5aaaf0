// How kernels are computed: the row of the strategy table that each operator has, and those that were passed over.

function drawChoices() {
  const section = byId("choices");
  if (!data.choices) {
    section.hidden = true;
    return;
  }
  byId("choices-note").textContent = "The row that each operator has, and every other one with the reason why it was passed over. Operators without other rows are left out.";
  const head = ["Kernel", "Operator", "Row", "Scheduler", "Why", "Passed over"];
  const rows = [];
  data.kernels.forEach((kernel, number) => {
    const found = data.choices[number];
    if (!found) return;
    for (const one of found.operators.filter((each) => each.row !== each.operator || each.passed_over.length)) {
      rows.push(element("tr", { "data-choice": number, onclick: () => openKernel(number) },
        element("td", { class: "name" }, element("button", { type: "button" }, kernel.shortName)),
        element("td", { class: "text" }, one.operator),
        element("td", { class: "text" }, one.row, element("small", {}, one.computation)),
        element("td", { class: "text" }, one.scheduler),
        element("td", { class: "text" }, one.reason),
        element("td", { class: "text" }, ...one.passed_over.map((row) => element("div", {}, `${row.row}: ${row.reason}`)))));
    }
  });
  byId("choice-table").replaceChildren(
    element("thead", {}, element("tr", {}, ...head.map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {}, ...rows));
}
