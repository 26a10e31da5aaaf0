import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import tilewright.GraphExecutor;
import tilewright.Module;
import tilewright.TilewrightException;

/** Runs the model of make_model.py from Java: {@code java Main FOLDER}. */
public final class Main {
    private static final double TOLERANCE = 1e-5;

    private Main() {}

    private static float[] floats(Path path) throws IOException {
        byte[] bytes = Files.readAllBytes(path);
        float[] values = new float[bytes.length / Float.BYTES];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(values);
        return values;
    }

    private static boolean run(Path folder) throws IOException {
        Module module = Module.load(folder.resolve("model.so"));
        try (GraphExecutor graph = new GraphExecutor(Files.readString(folder.resolve("graph.json")), module)) {
            graph.loadParams(Files.readAllBytes(folder.resolve("params.bin")));
            graph.setInput("x", floats(folder.resolve("input.bin")), 4, 64);
            graph.run();
            float[] values = graph.output("probabilities");
            int columns = (int) graph.outputShape("probabilities")[1];
            return report(values, columns, floats(folder.resolve("expected.bin")));
        }
    }

    /** Prints what the model says; false if it is not what is expected. */
    private static boolean report(float[] values, int columns, float[] expected) {
        if (expected.length != values.length) {
            throw new IllegalArgumentException("expected.bin is of another length than the output");
        }
        StringBuilder classes = new StringBuilder();
        boolean isClose = true;
        double most = 0;
        for (int row = 0; row < values.length; row += columns) {
            int best = row;
            for (int i = row; i < row + columns; i++) {
                double difference = Math.abs((double) values[i] - (double) expected[i]);
                isClose &= difference <= TOLERANCE; // not true of NaN either
                most = Math.max(most, difference);
                best = values[i] > values[best] ? i : best;
            }
            classes.append(' ').append(best - row);
        }
        System.out.println("prediction:" + classes);
        System.out.printf(Locale.ROOT, "largest difference: %.2e%n", most);
        return isClose;
    }

    public static void main(String[] arguments) {
        if (arguments.length != 1) {
            System.err.println("usage: java Main FOLDER");
            System.exit(2);
        }
        try {
            System.exit(run(Path.of(arguments[0])) ? 0 : 1);
        } catch (TilewrightException error) {
            System.err.println(error.kind() + ": " + error.getMessage());
        } catch (IOException | IllegalArgumentException error) {
            System.err.println(error);
        }
        System.exit(2);
    }
}
