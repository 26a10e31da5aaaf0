package tilewright;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** A graph of a module's functions, with its memory and parameters. One thread at a time uses it. */
public final class GraphExecutor implements AutoCloseable {
    private long graph;

    public GraphExecutor(String json, Module module) {
        graph = create(Text.bytes(json), module.library);
    }

    /** Copies parameters, as {@code save_param_dict} wrote them, into the inputs of their names. */
    public synchronized void loadParams(byte[] bytes) {
        loadParams(open(), Objects.requireNonNull(bytes));
    }

    /** Copies values, in row-major order, into the input of a name. */
    public synchronized void setInput(String name, float[] values, long... shape) {
        long count = 1;
        for (long extent : shape) {
            count = Math.multiplyExact(count, extent);
        }
        if (count != values.length) {
            throw new TilewrightException("ValueError", values.length + " values do not fill the shape");
        }
        setInput(open(), Text.bytes(name), values, shape);
    }

    /** Runs every node once. */
    public synchronized void run() {
        run(open());
    }

    /** The names of the outputs, as the model gives them, in its order. */
    public synchronized List<String> outputNames() {
        List<String> names = new ArrayList<>();
        for (int index = 0; index < numOutputs(open()); index++) {
            names.add(new String(outputName(open(), index), StandardCharsets.UTF_8));
        }
        return names;
    }

    /** A copy of the elements of the output of a name, in row-major order. */
    public synchronized float[] output(String name) {
        return output(open(), outputIndex(open(), Text.bytes(name)));
    }

    /** A copy of an output's elements, in row-major order. */
    public synchronized float[] output(int index) {
        return output(open(), index);
    }

    /** The extents of the output of a name. */
    public synchronized long[] outputShape(String name) {
        return outputShape(open(), outputIndex(open(), Text.bytes(name)));
    }

    /** The extents of an output. */
    public synchronized long[] outputShape(int index) {
        return outputShape(open(), index);
    }

    @Override
    public synchronized void close() {
        release(graph);
        graph = 0;
    }

    private long open() {
        if (graph == 0) {
            throw new IllegalStateException("the graph executor is closed");
        }
        return graph;
    }

    private static native long create(byte[] json, long library);

    private static native void release(long graph);

    private static native void loadParams(long graph, byte[] bytes);

    private static native void setInput(long graph, byte[] name, float[] values, long[] shape);

    private static native void run(long graph);

    private static native int numOutputs(long graph);

    private static native byte[] outputName(long graph, int index);

    private static native int outputIndex(long graph, byte[] name);

    private static native float[] output(long graph, int index);

    private static native long[] outputShape(long graph, int index);
}
