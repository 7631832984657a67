import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** One action of a client: ACTION BOOTSTRAP TOPIC RECORDS. Prints its outcome as JSON. */
public final class Recipe {
    private static final Duration STEP = Duration.ofMillis(500);
    private static final long DEADLINE_NS = 60_000_000_000L;
    private final String bootstrap;
    private final int count;
    private final TopicPartition place;

    private Recipe(String bootstrap, String topic, int count) {
        this.bootstrap = bootstrap;
        this.count = count;
        this.place = new TopicPartition(topic, 0);
    }

    public static void main(String[] args) throws Exception {
        Recipe recipe = new Recipe(args[1], args[2], Integer.parseInt(args[3]));
        System.out.println(
                switch (args[0]) {
                    case "produce" -> recipe.produce();
                    case "consume" -> recipe.consume();
                    default -> recipe.commit();
                });
    }

    private Properties settings(Map<String, Object> more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("client.id", "recipe");
        all.put("request.timeout.ms", 2_000);
        all.putAll(more);
        return all;
    }

    /** Sends each record when the one before it is acknowledged. */
    private String produce() throws Exception {
        Properties settings = settings(Map.of("delivery.timeout.ms", 30_000));
        double longest = 0;
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < count; number++) {
                long began = System.nanoTime();
                producer.send(new ProducerRecord<>(place.topic(), 0, null, "" + number)).get();
                longest = Math.max(longest, (System.nanoTime() - began) / 1e9);
            }
            double throttled = producer.metrics().entrySet().stream()
                    .filter(one -> one.getKey().name().equals("produce-throttle-time-max"))
                    .mapToDouble(one -> (Double) one.getValue().metricValue())
                    .max().orElse(0);
            return "{\"acked\": " + count + ", \"throttled_ms\": " + Math.round(throttled)
                    + ", \"longest_s\": " + longest + "}";
        }
    }

    /** A Fetch returns one batch, which has one record. */
    private KafkaConsumer<String, String> consumer() {
        Properties settings = settings(Map.of(
                "group.id", place.topic(),
                "auto.offset.reset", "earliest",
                "enable.auto.commit", false,
                "max.partition.fetch.bytes", 1));
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private String consume() {
        try (KafkaConsumer<String, String> consumer = consumer()) {
            consumer.assign(List.of(place));
            return "{\"values\": " + read(consumer, false) + "}";
        }
    }

    /** Commits the offset after each record. */
    private String commit() {
        try (KafkaConsumer<String, String> consumer = consumer()) {
            consumer.subscribe(List.of(place.topic()));
            List<Integer> values = read(consumer, true);
            long committed = consumer.committed(Set.of(place)).get(place).offset();
            return "{\"values\": " + values + ", \"committed\": " + committed + "}";
        }
    }

    private List<Integer> read(KafkaConsumer<String, String> consumer, boolean commits) {
        List<Integer> values = new ArrayList<>();
        long deadline = System.nanoTime() + DEADLINE_NS;
        while (values.size() < count && System.nanoTime() < deadline) {
            for (ConsumerRecord<String, String> one : consumer.poll(STEP)) {
                values.add(Integer.parseInt(one.value()));
                if (commits) {
                    consumer.commitSync(Map.of(place, new OffsetAndMetadata(one.offset() + 1)));
                }
            }
        }
        return values;
    }
}
