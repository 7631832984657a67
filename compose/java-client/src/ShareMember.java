import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.StringJoiner;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a share group (KIP-932), which reads the topics that its second argument names.
 *
 * <pre>
 * poll MS                                   reports each record
 * acknowledge TOPIC PARTITION OFFSET TYPE   a record of the last poll: ACCEPT, RELEASE or REJECT
 * commit MS                                 reports "result TOPIC PARTITION OUTCOME"
 * close
 * </pre>
 *
 * A record is "record TOPIC PARTITION OFFSET EPOCH TIMESTAMP TIMESTAMP_TYPE COUNT KEY VALUE HEADERS".
 * Bytes are "-" for null, else "=" and their base64; headers are separated by commas, name and value
 * by a colon.
 */
public final class ShareMember extends CommandProgram {
    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final Map<String, ConsumerRecord<byte[], byte[]>> polled = new HashMap<>();

    private ShareMember(Properties settings, List<String> topics) {
        consumer = new KafkaShareConsumer<>(
            settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(topics);
    }

    public static void main(String[] args) throws IOException {
        new ShareMember(settings(args[0]), List.of(args[1].split(","))).run();
    }

    @Override
    void execute(String[] words) {
        switch (words[0]) {
            case "poll" -> poll(millis(words[1]));
            case "acknowledge" -> consumer.acknowledge(
                polled.get(words[1] + " " + words[2] + " " + words[3]),
                AcknowledgeType.valueOf(words[4]));
            case "commit" -> consumer.commitSync(millis(words[1])).forEach(ShareMember::report);
            case "close" -> consumer.close();
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void poll(Duration timeout) {
        polled.clear();
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(timeout)) {
            polled.put(record.topic() + " " + record.partition() + " " + record.offset(), record);
            report(record);
        }
    }

    private static Duration millis(String text) {
        return Duration.ofMillis(Long.parseLong(text));
    }

    private static void report(ConsumerRecord<byte[], byte[]> record) {
        StringJoiner headers = new StringJoiner(",", "=", "");
        for (Header header : record.headers()) {
            headers.add(text(header.key().getBytes(StandardCharsets.UTF_8)) + ":"
                + text(header.value()));
        }
        print("record " + record.topic() + " " + record.partition() + " " + record.offset() + " "
            + record.leaderEpoch().orElse(-1) + " " + record.timestamp() + " "
            + record.timestampType().id + " " + record.deliveryCount().orElse((short) -1) + " "
            + text(record.key()) + " " + text(record.value()) + " " + headers);
    }

    private static void report(TopicIdPartition partition, Optional<KafkaException> error) {
        print("result " + partition.topic() + " " + partition.partition() + " "
            + error.map(CommandProgram::outcomeOf).orElse("0"));
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : "=" + Base64.getEncoder().encodeToString(bytes);
    }
}
