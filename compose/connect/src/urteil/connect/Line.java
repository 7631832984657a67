package urteil.connect;

import java.util.Base64;
import java.util.Map;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * A record as a line of text, and a line as a record: the form in which Kafka's file connectors and
 * a table carry the lab's binary records.
 *
 * <p>A line has five words: topic, partition, offset, key and value, both in Base64, "-" for null.
 * A record with bytes becomes a line; a record whose value is a line becomes one with bytes, and
 * keeps the topic of its connector.
 */
public final class Line<R extends ConnectRecord<R>> implements Transformation<R> {
    @Override
    public R apply(R record) {
        if (record.value() instanceof String) {
            return parse(record, (String) record.value());
        }
        SinkRecord read = (SinkRecord) (Object) record;
        String line = String.join(
                " ",
                record.topic(),
                Integer.toString(record.kafkaPartition()),
                Long.toString(read.kafkaOffset()),
                encode(record.key()),
                encode(record.value()));
        return with(record, null, null, Schema.STRING_SCHEMA, line);
    }

    private R parse(R record, String line) {
        String[] words = line.split(" ", -1);
        if (words.length != 5) {
            throw new DataException("a line has " + words.length + " words instead of 5: " + line);
        }
        byte[] key = decode(words[3]);
        byte[] value = decode(words[4]);
        return with(record, Schema.OPTIONAL_BYTES_SCHEMA, key, Schema.OPTIONAL_BYTES_SCHEMA, value);
    }

    private R with(R record, Schema keySchema, Object key, Schema valueSchema, Object value) {
        return record.newRecord(
                record.topic(), record.kafkaPartition(), keySchema, key, valueSchema, value,
                record.timestamp());
    }

    private static String encode(Object bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString((byte[]) bytes);
    }

    private static byte[] decode(String word) {
        return word.equals("-") ? null : Base64.getDecoder().decode(word);
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void close() {}
}
