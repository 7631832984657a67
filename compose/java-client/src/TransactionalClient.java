import java.io.IOException;
import java.time.Duration;
import java.util.Base64;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A transactional producer.
 *
 * <pre>
 * open                                            another producer, in place of the last one
 * init | begin | commit | abort
 * send OP TOPIC PARTITION TIMESTAMP KEY VALUE     key and value in base64
 * </pre>
 *
 * Each record that was sent is reported with "delivered OP PARTITION OFFSET OUTCOME" at any time.
 */
public final class TransactionalClient extends CommandProgram {
    private final Properties settings;
    private KafkaProducer<byte[], byte[]> producer;

    private TransactionalClient(Properties settings) {
        this.settings = settings;
    }

    public static void main(String[] args) throws IOException {
        new TransactionalClient(settings(args[0])).run();
    }

    @Override
    void execute(String[] words) {
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
}
