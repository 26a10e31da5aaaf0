// Runs the model of make_model.py from JavaScript.   node main.mjs FOLDER
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GraphExecutor, Module } from "./tilewright.mjs";

const TOLERANCE = 1e-5;

async function floats(path) {
  const bytes = await readFile(path);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

async function main(folder) {
  const module = await Module.load(await readFile(join(folder, "model.wasm")));
  const graph = new GraphExecutor(module, await readFile(join(folder, "graph.json"), "utf8"));
  try {
    graph.loadParams(await readFile(join(folder, "params.bin")));
    graph.setInput("x", await floats(join(folder, "input.bin")));
    graph.run();
    const { values, shape } = graph.output("probabilities");
    const expected = await floats(join(folder, "expected.bin"));
    if (expected.length !== values.length) throw new Error("expected.bin is of another length than the output");

    const [rows, columns] = shape;
    const classes = Array.from({ length: rows }, (_, row) => {
      const scores = values.subarray(row * columns, (row + 1) * columns);
      return scores.indexOf(Math.max(...scores));
    });
    const difference = values.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i])), 0);
    console.log(`prediction: ${classes.join(" ")}`);
    console.log(`largest difference: ${difference.toExponential(2)}`);
    return difference <= TOLERANCE ? 0 : 1;
  } finally {
    graph.close();
  }
}

if (process.argv.length !== 3) {
  console.error("usage: node main.mjs FOLDER");
  process.exitCode = 2;
} else {
  try {
    process.exitCode = await main(process.argv[2]);
  } catch (error) {
    console.error(`${error.kind ?? error.name}: ${error.message}`);
    process.exitCode = 2;
  }
}
