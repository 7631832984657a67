import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.Errors;

/**
 * A client that executes the commands of its standard input, a line each, and ends with it.
 *
 * <p>Each command is answered with "done OUTCOME". An outcome is "0", or "CODE KIND MESSAGE": the
 * protocol's error code, and whether the caller may retry the command ("retriable"), abort the
 * transaction ("abortable") or needs another client ("fatal").
 */
abstract class CommandProgram {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    static Properties settings(String path) throws IOException {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(path)) {
            settings.load(file);
        }
        return settings;
    }

    abstract void execute(String[] words);

    void run() throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answer(line.split(" "));
        }
        Runtime.getRuntime().halt(0);
    }

    private void answer(String[] words) {
        String outcome = "0";
        try {
            execute(words);
        } catch (KafkaException | IllegalStateException error) {
            outcome = outcomeOf(error);
        }
        print("done " + outcome);
    }

    static String outcomeOf(Exception error) {
        Throwable cause = causeOf(error);
        String kind = isFatal(cause) ? "fatal"
            : cause instanceof RetriableException ? "retriable" : "abortable";
        String message = String.valueOf(cause.getMessage()).replace('\n', ' ');
        return Errors.forException(cause).code() + " " + kind + " "
            + cause.getClass().getSimpleName() + ": " + message;
    }

    /** The first cause with an error code of its own: a failed producer wraps it in each call. */
    private static Throwable causeOf(Exception error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (Errors.forException(cause) != Errors.UNKNOWN_SERVER_ERROR) {
                return cause;
            }
        }
        return error;
    }

    private static boolean isFatal(Throwable error) {
        return error instanceof ProducerFencedException
            || error instanceof OutOfOrderSequenceException
            || error instanceof AuthorizationException
            || error instanceof UnsupportedVersionException
            || error instanceof ApplicationRecoverableException
            || error instanceof IllegalStateException;
    }

    static synchronized void print(String line) {
        OUT.println(line);
        OUT.flush();
    }
}
