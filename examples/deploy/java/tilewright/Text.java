package tilewright;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Strings as C reads them. */
final class Text {
    private Text() {}

    /** UTF-8 with a zero byte at the end. */
    static byte[] bytes(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return Arrays.copyOf(bytes, bytes.length + 1);
    }
}
