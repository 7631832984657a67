import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Produce and consume as a member of a group, with what the clients of version 0.9 have. */
public final class Program {
    private static final int RECORDS = 100;
    private static final long WAIT_MS = 60_000;

    public static void main(String[] args) throws Exception {
        String topic = args[2];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("group.id", topic + "-group");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("acks", "all");
        settings.put("compression.type", args[0]);
        for (String side : new String[] {"key", "value"}) {
            String base = "org.apache.kafka.common.serialization.String";
            settings.put(side + ".serializer", base + "Serializer");
            settings.put(side + ".deserializer", base + "Deserializer");
        }
        long last = -1;
        try (KafkaProducer<String, String> producer = new KafkaProducer<String, String>(settings)) {
            for (int n = 0; n < RECORDS; n++) {
                String text = String.valueOf(n);
                last = producer.send(new ProducerRecord<String, String>(topic, 0, text, text)).get().offset();
            }
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(settings)) {
            consumer.subscribe(Collections.singletonList(topic));
            int read = 0;
            boolean isSame = true;
            long deadline = System.currentTimeMillis() + WAIT_MS;
            while (read < RECORDS && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(200)) {
                    isSame &= record.value().equals(String.valueOf(record.offset()));
                    read++;
                }
            }
            consumer.commitSync();
            long committed = consumer.committed(new TopicPartition(topic, 0)).offset();
            System.out.println("{\"last\": " + last + ", \"read\": " + read + ", \"same\": " + isSame
                    + ", \"committed\": " + committed + "}");
        }
    }
}
