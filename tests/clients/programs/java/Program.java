import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Produce, consume, group, transaction and administration with Apache Kafka's own client. */
public final class Program {
    private static final Duration STEP = Duration.ofMillis(200);
    private final String bootstrap;
    private final String prefix;
    private final String topic;
    private final String group;
    private final List<TopicPartition> places = new ArrayList<>();

    private Program(String bootstrap, String prefix) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
        this.topic = prefix + "-data";
        this.group = prefix + "-group";
        for (int partition = 0; partition < 3; partition++) {
            places.add(new TopicPartition(topic, partition));
        }
    }

    public static void main(String[] args) throws Exception {
        Program it = new Program(args[0], args[1]);
        System.out.println(
                "{\"administration\": " + it.administration() + ", \"produce\": " + it.produce()
                        + ", \"consume\": " + it.consume() + ", \"group\": " + it.group()
                        + ", \"transaction\": " + it.transaction() + "}");
    }

    private Properties settings(String... more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        for (int n = 0; n < more.length; n += 2) {
            all.put(more[n], more[n + 1]);
        }
        return all;
    }

    private String administration() throws Exception {
        try (Admin admin = Admin.create(settings())) {
            NewTopic made = new NewTopic(topic, 3, (short) 3).configs(Map.of("retention.ms", "3600000"));
            admin.createTopics(List.of(made)).all().get();
            String again = "created";
            try {
                admin.createTopics(List.of(made)).all().get();
            } catch (ExecutionException error) {
                again = error.getCause() instanceof TopicExistsException ? "exists" : error.toString();
            }
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            String retention = retention(admin, resource);
            String gone = prefix + "-gone";
            admin.createTopics(List.of(new NewTopic(gone, 1, (short) 1))).all().get();
            admin.createPartitions(Map.of(gone, NewPartitions.increaseTo(2))).all().get();
            admin.deleteTopics(List.of(gone)).all().get();
            Set<Integer> brokers = new TreeSet<>();
            for (Node node : admin.describeCluster().nodes().get()) {
                brokers.add(node.id());
            }
            return "{\"retention\": \"" + retention + "\", \"again\": \"" + again
                    + "\", \"brokers\": " + brokers + "}";
        }
    }

    /** Asks again while a broker has not heard of the topic yet, as its maker has. */
    private static String retention(Admin admin, ConfigResource resource) throws Exception {
        for (long deadline = System.nanoTime() + 30_000_000_000L; ; ) {
            try {
                return admin.describeConfigs(List.of(resource)).all().get()
                        .get(resource).get("retention.ms").value();
            } catch (ExecutionException error) {
                if (System.nanoTime() > deadline) {
                    throw error;
                }
            }
        }
    }

    private KafkaProducer<String, String> producer(String... more) {
        return new KafkaProducer<>(settings(more), new StringSerializer(), new StringSerializer());
    }

    private String produce() throws Exception {
        long[] last = {-1, -1, -1};
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer("compression.type", "lz4")) {
            for (int n = 0; n < 90; n++) {
                ProducerRecord<String, String> one =
                        new ProducerRecord<>(topic, n % 3, "key " + n, "value " + n);
                one.headers().add("n", Integer.toString(n).getBytes());
                sent.add(producer.send(one));
            }
        }
        for (Future<RecordMetadata> one : sent) {
            RecordMetadata metadata = one.get();
            last[metadata.partition()] = Math.max(last[metadata.partition()], metadata.offset());
        }
        return "{\"last\": " + java.util.Arrays.toString(last) + "}";
    }

    private KafkaConsumer<String, String> consumer(String... more) {
        return new KafkaConsumer<>(settings(more), new StringDeserializer(), new StringDeserializer());
    }

    private List<ConsumerRecord<String, String>> everything(String isolation) {
        List<ConsumerRecord<String, String>> seen = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("isolation.level", isolation)) {
            Map<TopicPartition, Long> ends = consumer.endOffsets(places);
            for (TopicPartition place : places) {
                consumer.assign(List.of(place));
                consumer.seekToBeginning(List.of(place));
                while (consumer.position(place) < ends.get(place)) {
                    consumer.poll(STEP).forEach(seen::add);
                }
            }
        }
        return seen;
    }

    private String consume() {
        List<String> records = new ArrayList<>();
        for (ConsumerRecord<String, String> one : everything("read_uncommitted")) {
            String header = new String(one.headers().lastHeader("n").value());
            records.add("[\"" + one.value() + "\", \"" + one.key() + "\", \"" + header + "\"]");
        }
        return "{\"records\": " + records + "}";
    }

    private KafkaConsumer<String, String> member() {
        KafkaConsumer<String, String> consumer = consumer(
                "group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private String group() throws Exception {
        int read = 0;
        List<Long> committed = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = member()) {
            while (read < 90) {
                read += consumer.poll(STEP).count();
            }
            consumer.commitSync();
            Map<TopicPartition, OffsetAndMetadata> known = consumer.committed(new HashSet<>(places));
            places.forEach(place -> committed.add(known.get(place).offset()));
        }
        try (Admin admin = Admin.create(settings())) {
            String state = admin.describeConsumerGroups(List.of(group)).all().get()
                    .get(group).state().name();
            return "{\"read\": " + read + ", \"committed\": " + committed
                    + ", \"state\": \"" + state + "\"}";
        }
    }

    private String transaction() {
        long offset;
        try (KafkaProducer<String, String> producer = producer("transactional.id", prefix + "-txn");
                KafkaConsumer<String, String> consumer = member()) {
            producer.initTransactions();
            while (consumer.assignment().isEmpty()) {
                consumer.poll(STEP);
            }
            for (String fate : List.of("aborted", "committed")) {
                producer.beginTransaction();
                for (int n = 0; n < 10; n++) {
                    producer.send(new ProducerRecord<>(topic, 0, null, fate + " " + n));
                }
                producer.flush();  // an abort drops what was not sent yet
                if (fate.equals("aborted")) {
                    producer.abortTransaction();
                } else {
                    Map<TopicPartition, OffsetAndMetadata> where = new HashMap<>();
                    where.put(places.get(0), new OffsetAndMetadata(7));
                    producer.sendOffsetsToTransaction(where, consumer.groupMetadata());
                    producer.commitTransaction();
                }
            }
            // An end is answered before its markers are written: the next of the same id waits.
            try (KafkaProducer<String, String> heir = producer("transactional.id", prefix + "-txn")) {
                heir.initTransactions();
            }
            offset = consumer.committed(Set.of(places.get(0))).get(places.get(0)).offset();
        }
        return "{\"read_committed\": " + everything("read_committed").size()
                + ", \"read_uncommitted\": " + everything("read_uncommitted").size()
                + ", \"offset\": " + offset + "}";
    }
}
