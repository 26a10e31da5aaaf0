// Tilewright's runtime and a model in one WebAssembly file, for Node.js and browsers. No packages needed.

/** An error of the runtime or of a compiled function; `kind` is its class, such as "ValueError". */
export class TilewrightError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "TilewrightError";
    this.kind = kind;
  }
}

// Where the members of a DLTensor are in a 32-bit address space.
const DATA = 0;
const NDIM = 12;
const DTYPE = 16; // code, bits, lanes
const SHAPE = 20;
const BYTE_OFFSET = 32;

const ELEMENTS = {
  "0,8": Int8Array,
  "0,16": Int16Array,
  "0,32": Int32Array,
  "0,64": BigInt64Array,
  "1,8": Uint8Array,
  "1,16": Uint16Array,
  "1,32": Uint32Array,
  "1,64": BigUint64Array,
  "2,32": Float32Array,
  "2,64": Float64Array,
};

/** A model file, compiled and ready to make graphs of its functions. */
export class Module {
  #functions;

  /** Compiles the bytes of a model file. */
  static async load(bytes) {
    let memory;
    // The one thing that the runtime asks of its host: the time, in nanoseconds, to measure functions with.
    const clock_time_get = (clock, precision, out) => {
      new DataView(memory.buffer).setBigUint64(out, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    };
    const { instance } = await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: { clock_time_get } });
    memory = instance.exports.memory;
    instance.exports._initialize();
    return new Module(instance.exports);
  }

  constructor(functions) {
    this.#functions = functions;
  }

  /** The runtime's functions. Their pointers are numbers: offsets into `memory`. */
  get functions() {
    return this.#functions;
  }

  /** The memory as it is now. It moves whenever it grows, so a view must not outlive the next call. */
  get view() {
    return new DataView(this.#functions.memory.buffer);
  }

  /** Throws the runtime's error if a status says that there is one. */
  check(status) {
    if (status === 0) return;
    const kind = this.text(this.#functions.tilewright_error_kind());
    throw new TilewrightError(kind, this.text(this.#functions.tilewright_error_message()));
  }

  /** Calls `body(address, size)` with bytes copied into the memory, for as long as the call lasts. */
  withBytes(bytes, body) {
    const address = this.#functions.malloc(Math.max(bytes.length, 1));
    if (address === 0) throw new TilewrightError("MemoryError", `no memory for ${bytes.length} bytes`);
    try {
      new Uint8Array(this.#functions.memory.buffer).set(bytes, address);
      return body(address, bytes.length);
    } finally {
      this.#functions.free(address);
    }
  }

  /** The pointer that `body(out)` stores, after its status has been checked. */
  pointerFrom(body) {
    return this.withBytes(new Uint8Array(4), (out) => {
      this.check(body(out));
      return this.view.getUint32(out, true);
    });
  }

  /** The text at an address; empty where there is none. */
  text(address) {
    if (address === 0) return "";
    const bytes = new Uint8Array(this.#functions.memory.buffer);
    return new TextDecoder().decode(bytes.slice(address, bytes.indexOf(0, address)));
  }
}

/** A graph of a module's functions. Call `close` when done with it: WebAssembly memory is not collected. */
export class GraphExecutor {
  #module;
  #graph;

  constructor(module, json) {
    this.#module = module;
    const text = new TextEncoder().encode(json);
    this.#graph = module.withBytes(text, (address, size) => module.functions.create_graph(address, size));
    if (this.#graph === 0) module.check(-1);
  }

  /** Copies parameters, as `save_param_dict` wrote them, into the inputs of their names. */
  loadParams(bytes) {
    const load = this.#module.functions.tilewright_graph_load_params;
    this.#module.withBytes(bytes, (address, size) => this.#module.check(load(this.#graph, address, size)));
  }

  /** Copies the elements of a typed array into the input of a name. */
  setInput(name, values) {
    this.#withTensor("tilewright_graph_input", this.#index("input", name), (target) => {
      if (values.constructor !== target.constructor || values.length !== target.length) {
        const wanted = `${target.length} elements in a ${target.constructor.name}`;
        throw new TilewrightError("ValueError", `the input ${name} takes ${wanted}`);
      }
      target.set(values);
    });
  }

  /** Runs every node once. */
  run() {
    this.#module.check(this.#module.functions.tilewright_graph_run(this.#graph));
  }

  /** The names of the outputs, as the model gives them, in its order. */
  get outputNames() {
    const { tilewright_graph_num_outputs, tilewright_graph_output_name } = this.#module.functions;
    return Array.from({ length: tilewright_graph_num_outputs(this.#graph) }, (_, index) =>
      this.#module.text(tilewright_graph_output_name(this.#graph, index)),
    );
  }

  /** A copy of the output of a name or at a position: its elements and its shape. */
  output(which) {
    const index = typeof which === "string" ? this.#index("output", which) : which;
    return this.#withTensor("tilewright_graph_output", index, (values, shape) => ({ values: values.slice(), shape }));
  }

  /** Frees the graph's memory. */
  close() {
    this.#module.functions.tilewright_graph_release(this.#graph);
    this.#graph = 0;
  }

  /** The position of the input or output of a name. */
  #index(kind, name) {
    const find = this.#module.functions[`tilewright_graph_${kind}_index`];
    const bytes = new TextEncoder().encode(`${name}\0`);
    const index = this.#module.withBytes(bytes, (address) => find(this.#graph, address));
    if (index < 0) throw new TilewrightError("ValueError", `the graph has no ${kind} ${name}`);
    return index;
  }

  /** Calls `body(elements, shape)`, where the elements are those of the tensor itself. */
  #withTensor(getter, index, body) {
    const { functions } = this.#module;
    const object = this.#module.pointerFrom((out) => functions[getter](this.#graph, index, out));
    try {
      const tensor = functions.tilewright_tensor_dltensor(object);
      const { view } = this.#module;
      const shapeAddress = view.getUint32(tensor + SHAPE, true);
      const shape = Array.from({ length: view.getInt32(tensor + NDIM, true) }, (_, dimension) =>
        Number(view.getBigInt64(shapeAddress + 8 * dimension, true)),
      );
      const kind = `${view.getUint8(tensor + DTYPE)},${view.getUint8(tensor + DTYPE + 1)}`;
      const Elements = view.getUint16(tensor + DTYPE + 2, true) === 1 ? ELEMENTS[kind] : undefined;
      if (Elements === undefined) throw new TilewrightError("TypeError", "no typed array has these elements");
      const data = view.getUint32(tensor + DATA, true) + Number(view.getBigUint64(tensor + BYTE_OFFSET, true));
      const length = shape.reduce((product, extent) => product * extent, 1);
      return body(new Elements(view.buffer, data, length), shape);
    } finally {
      functions.tilewright_object_release(object);
    }
  }
}
