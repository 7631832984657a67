import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A transactional producer that executes the commands of its standard input, a line each.
 *
 * <pre>
 * open                                            another producer, in place of the last one
 * init | begin | commit | abort
 * send OP TOPIC PARTITION TIMESTAMP KEY VALUE     key and value in base64
 * </pre>
 *
 * Each command is answered with "done OUTCOME", each record that was sent with "delivered OP
 * PARTITION OFFSET OUTCOME" at any time. An outcome is "0", or "CODE KIND MESSAGE": the protocol's
 * error code, and whether the caller may retry the command ("retriable"), abort the transaction
 * ("abortable") or needs another producer ("fatal"). The program ends with its standard input.
 */
public final class TransactionalClient {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private final Properties settings;
    private KafkaProducer<byte[], byte[]> producer;

    private TransactionalClient(Properties settings) {
        this.settings = settings;
    }

    public static void main(String[] args) throws IOException {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(args[0])) {
            settings.load(file);
        }
        TransactionalClient client = new TransactionalClient(settings);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            client.answer(line.split(" "));
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

    private void execute(String[] words) {
        switch (words[0]) {
            case "open" -> open();
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "send" -> send(words);
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void open() {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void send(String[] words) {
        Base64.Decoder base64 = Base64.getDecoder();
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
            words[2], Integer.valueOf(words[3]), Long.valueOf(words[4]),
            base64.decode(words[5]), base64.decode(words[6]));
        producer.send(record, (metadata, error) -> delivered(words[1], record, metadata, error));
    }

    private static void delivered(
        String op, ProducerRecord<byte[], byte[]> record, RecordMetadata metadata, Exception error) {
        long offset = error == null && metadata.hasOffset() ? metadata.offset() : -1;
        print("delivered " + op + " " + record.partition() + " " + offset + " "
            + (error == null ? "0" : outcomeOf(error)));
    }

    private static String outcomeOf(Exception error) {
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

    private static synchronized void print(String line) {
        OUT.println(line);
        OUT.flush();
    }
}
