import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * One instance of a Streams application over the lab's records.
 *
 * <p>Arguments: the topology, the properties of Streams, the seeded bug or `none`, the result topic,
 * and the input topics. It prints RUNNING when it runs, replaces a thread that fails, and ends at
 * SIGTERM.
 */
public final class StreamsApplication {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<byte[]> BYTES = Serdes.ByteArray();
    private static final Duration GRACE = Duration.ofSeconds(25);
    /** One topic may be ahead of the other by as long as all instances were down. */
    private static final Duration JOIN_GRACE = Duration.ofHours(1);
    private static final int FIXED = 30;

    private StreamsApplication() {}

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (var file = Files.newBufferedReader(Path.of(args[1]))) {
            settings.load(file);
        }
        List<String> inputs = List.of(args).subList(4, args.length);
        StreamsBuilder builder = new StreamsBuilder();
        switch (args[0]) {
            case "count" -> count(builder, inputs, args[3], args[2]);
            case "join" -> join(builder, inputs, args[3]);
            case "windows" -> windows(builder, inputs, args[3]);
            default -> throw new IllegalArgumentException("no topology " + args[0]);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
        streams.setStateListener(
                (now, before) -> {
                    if (now == KafkaStreams.State.RUNNING) {
                        System.out.println("urteil: RUNNING");
                    } else if (now == KafkaStreams.State.ERROR) {
                        Runtime.getRuntime().halt(3);
                    }
                });
        streams.setUncaughtExceptionHandler(
                failure -> {
                    System.out.println("urteil: a thread is replaced after " + failure);
                    return StreamThreadExceptionResponse.REPLACE_THREAD;
                });
        Runtime.getRuntime()
                .addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
    }

    /** Counts words: the key of a record, its client, and the parity of its number. */
    private static void count(StreamsBuilder builder, List<String> inputs, String to, String bug) {
        Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counts = Materialized.as("counts");
        if (bug.equals("forgets_store")) {
            counts =
                    Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                            .withLoggingDisabled();
        }
        records(builder, inputs)
                .flatMap(
                        (key, value) ->
                                List.of(
                                        KeyValue.pair(key, ""),
                                        KeyValue.pair(client(value), ""),
                                        KeyValue.pair(number(value) % 2 == 0 ? "even" : "odd", "")))
                .groupByKey(Grouped.with("words", TEXT, TEXT))
                .count(counts.withKeySerde(TEXT).withValueSerde(Serdes.Long()))
                .toStream()
                .to(to, Produced.with(TEXT, Serdes.Long()));
    }

    /** Joins two topics by the last digit of keys, within 300 ms. A result names both records. */
    private static void join(StreamsBuilder builder, List<String> inputs, String to) {
        KStream<String, String> left = named(builder, inputs.get(0));
        KStream<String, String> right = named(builder, inputs.get(1));
        left.join(
                        right,
                        (one, other) -> one + "|" + other,
                        JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(300), JOIN_GRACE),
                        StreamJoined.with(TEXT, TEXT, TEXT).withName("pairs"))
                .selectKey((digit, pair) -> pair)
                .to(to, Produced.with(TEXT, TEXT));
    }

    private static KStream<String, String> named(StreamsBuilder builder, String input) {
        return records(builder, List.of(input))
                .map((key, value) -> KeyValue.pair(key.substring(key.length() - 1), name(value)));
    }

    /** Counts each key in windows of 5 s. A result is final: it is written when its window closed. */
    private static void windows(StreamsBuilder builder, List<String> inputs, String to) {
        records(builder, inputs)
                .groupByKey(Grouped.with(TEXT, BYTES))
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(5), GRACE))
                .count(Materialized.as("windows"))
                .suppress(
                        Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())
                                .withName("until-closed"))
                .toStream((window, count) -> window.key() + "@" + window.window().start())
                .to(to, Produced.with(TEXT, Serdes.Long()));
    }

    private static KStream<String, byte[]> records(StreamsBuilder builder, List<String> inputs) {
        return builder.stream(inputs, Consumed.with(TEXT, BYTES));
    }

    /* The layout of a value is that of harness/clients/payload.py. */

    private static long number(byte[] value) {
        return ByteBuffer.wrap(value).getLong(12);
    }

    private static String client(byte[] value) {
        return new String(value, FIXED + value[28], value[29], StandardCharsets.UTF_8);
    }

    private static String name(byte[] value) {
        String run = new String(value, FIXED, value[28], StandardCharsets.UTF_8);
        return run + "/" + client(value) + "/" + number(value);
    }
}
