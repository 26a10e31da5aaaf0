package tilewright;

import java.nio.charset.StandardCharsets;

/** An error of the runtime or of a compiled function. */
public final class TilewrightException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final String kind;

    public TilewrightException(String kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** Called by the native code, whose strings are UTF-8. */
    TilewrightException(byte[] kind, byte[] message) {
        this(new String(kind, StandardCharsets.UTF_8), new String(message, StandardCharsets.UTF_8));
    }

    /** The class of the error, such as "ValueError". */
    public String kind() {
        return kind;
    }
}
