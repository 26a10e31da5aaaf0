package tilewright;

import java.nio.file.Path;

/** A library of compiled functions. It stays loaded until the program ends. */
public final class Module {
    static {
        System.loadLibrary("tilewright_jni");
    }

    final long library;

    private Module(long library) {
        this.library = library;
    }

    /** Loads a library that {@code export_library} wrote. Loading runs its code: it must be one that is trusted. */
    public static Module load(Path path) {
        return new Module(open(Text.bytes(path.toString())));
    }

    private static native long open(byte[] path);
}
