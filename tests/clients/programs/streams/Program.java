import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words by Kafka Streams, exactly once: over a repartitioned topic, into stores that are
 * thrown away half way and read again from their changelogs.
 *
 * <p>Prints a line when half is counted, and then each word's counts as `read_committed` shows them.
 */
public final class Program {
    private static final int WORDS = 7;
    private static final long WAIT_MS = 90_000;
    private final String bootstrap;
    private final String prefix;
    private final int count;
    private final Path state;

    private Program(String bootstrap, String prefix, int count, Path state) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
        this.count = count;
        this.state = state;
    }

    public static void main(String[] args) throws Exception {
        Program it = new Program(args[0], args[1], Integer.parseInt(args[2]), Path.of(args[3]));
        it.makeTopics();
        it.produce(0, it.count / 2);
        try (KafkaStreams streams = it.streams()) {
            streams.start();
            it.await(it.count / 2);
            System.out.println("{\"stream\": \"under way\"}");
            it.produce(it.count / 2, it.count * 3 / 4);
            it.await(it.count * 3 / 4);
        }
        try (KafkaStreams streams = it.streams()) {
            streams.cleanUp();
            streams.start();
            it.produce(it.count * 3 / 4, it.count);
            it.await(it.count);
        }
        System.out.println(it.counts());
    }

    private void makeTopics() throws Exception {
        try (Admin admin = Admin.create(settings())) {
            List<NewTopic> topics =
                    List.of(
                            new NewTopic(prefix + "-in", 3, (short) 3),
                            new NewTopic(prefix + "-out", 3, (short) 3));
            admin.createTopics(topics).all().get(30, TimeUnit.SECONDS);
        }
    }

    private Properties settings() {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        return all;
    }

    private void produce(int from, int upto) throws Exception {
        Properties settings = settings();
        settings.put("acks", "all");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int n = from; n < upto; n++) {
                producer.send(new ProducerRecord<>(prefix + "-in", "line " + n, "word" + n % WORDS));
            }
            producer.flush();
        }
    }

    private KafkaStreams streams() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(prefix + "-in", Consumed.with(Serdes.String(), Serdes.String()))
                .selectKey((line, word) -> word)
                .groupByKey()
                .count(Materialized.as("counts"))
                .toStream()
                .to(prefix + "-out", Produced.with(Serdes.String(), Serdes.Long()));
        Properties settings = settings();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 3);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, 1);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        return new KafkaStreams(builder.build(), settings);
    }

    private void await(int total) throws Exception {
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (true) {
            int seen = committed().values().stream().mapToInt(List::size).sum();
            if (seen >= total) {
                return;
            }
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException(seen + " of " + total + " counted");
            }
        }
    }

    private String counts() {
        StringBuilder text = new StringBuilder();
        for (Map.Entry<String, List<Long>> one : committed().entrySet()) {
            text.append(text.isEmpty() ? "{" : ", ");
            text.append('"').append(one.getKey()).append("\": ").append(one.getValue());
        }
        return text.append('}').toString();
    }

    /** Every count that was committed, by word, in the order of its partition. */
    private Map<String, List<Long>> committed() {
        Map<String, List<Long>> counts = new TreeMap<>();
        Properties settings = settings();
        settings.put("isolation.level", "read_committed");
        try (KafkaConsumer<String, Long> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new LongDeserializer())) {
            List<TopicPartition> places =
                    List.of(
                            new TopicPartition(prefix + "-out", 0),
                            new TopicPartition(prefix + "-out", 1),
                            new TopicPartition(prefix + "-out", 2));
            consumer.assign(places);
            consumer.seekToBeginning(places);
            Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(places));
            while (places.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
                    counts.computeIfAbsent(record.key(), word -> new ArrayList<>())
                            .add(record.value());
                }
            }
        }
        return counts;
    }
}
